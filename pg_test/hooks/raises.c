/*
 * An extension whose hooks and functions raise an ERROR where the parameter raises.at says so.
 */
#include "postgres.h"

#include "access/htup_details.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain.h"
#include "commands/explain_state.h"
#endif
#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "utils/guc.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static char *raises_at = NULL;

static bool
raises(const char *place)
{
	return raises_at != NULL && strcmp(raises_at, place) == 0;
}

static void
raise_at(const char *place)
{
	if (raises(place))
		ereport(ERROR, (errcode(ERRCODE_RAISE_EXCEPTION), errmsg("raised at %s", place), errdetail("By somebody else.")));
}

static void
on_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total, Selectivity *selectivity, double *correlation,
		double *pages)
{
	raise_at("cost");
}

static void
change_table(RelOptInfo *rel)
{
	ListCell   *cell;

	raise_at("table");
	if (raises("cost"))
		foreach(cell, rel->indexlist)
			((IndexOptInfo *) lfirst(cell))->amcostestimate = (void *) on_cost;
}

#if PG_VERSION_NUM >= 190000
static void
on_table(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	change_table(rel);
}
#else
static void
on_table(PlannerInfo *root, Oid relation, bool inhparent, RelOptInfo *rel)
{
	change_table(rel);
}
#endif

static void
on_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	raise_at("paths");
}

static bool
on_statistics(PlannerInfo *root, Oid index, AttrNumber column, VariableStatData *data)
{
	raise_at("statistics");
	return false;
}

static void
release(HeapTuple tuple)
{
	ReleaseSysCache(tuple);
	raise_at("release");
}

static bool
on_column(PlannerInfo *root, RangeTblEntry *rte, AttrNumber column, VariableStatData *data)
{
	if (!raises("release"))
		return false;
	data->statsTuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid), Int16GetDatum(column), BoolGetDatum(false));
	data->freefunc = release;
	data->acl_ok = true;
	return true;
}

static void
on_line(ErrorData *line)
{
	if (line->message != NULL && strcmp(line->message, "raise here") == 0)
		raise_at("log");
}

#if PG_VERSION_NUM >= 180000
static void
on_plan(PlannedStmt *plan, IntoClause *into, ExplainState *es, const char *query, ParamListInfo params, QueryEnvironment *env)
{
	raise_at("explain");
}
#endif

void
_PG_init(void)
{
	DefineCustomStringVariable("raises.at", "Where an ERROR is raised.", NULL, &raises_at, "", PGC_USERSET, 0, NULL, NULL, NULL);
#if PG_VERSION_NUM >= 190000
	build_simple_rel_hook = on_table;
#else
	get_relation_info_hook = on_table;
#endif
	set_rel_pathlist_hook = on_paths;
	get_index_stats_hook = on_statistics;
	get_relation_stats_hook = on_column;
	emit_log_hook = on_line;
#if PG_VERSION_NUM >= 180000
	explain_per_plan_hook = on_plan;
#endif
}
