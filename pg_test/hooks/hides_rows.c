/*
 * An extension that owns the paths of some tables, as column stores and rules of access do: of a table whose name begins with "hidden",
 * no row is seen. It replaces all paths by one of its own.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static set_rel_pathlist_hook_type previous;

static void begin(CustomScanState *node, EState *estate, int eflags) {}
static TupleTableSlot *next(CustomScanState *node) { return NULL; }
static void end(CustomScanState *node) {}

static const CustomExecMethods exec_methods = {
	.CustomName = "Hidden", .BeginCustomScan = begin, .ExecCustomScan = next, .EndCustomScan = end, .ReScanCustomScan = end};

static Node *
create_state(CustomScan *scan)
{
	CustomScanState *state = (CustomScanState *) newNode(sizeof(CustomScanState), T_CustomScanState);

	state->methods = &exec_methods;
	return (Node *) state;
}

static const CustomScanMethods scan_methods = {.CustomName = "Hidden", .CreateCustomScanState = create_state};

static Plan *
plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->scan.scanrelid = rel->relid;
	scan->flags = path->flags;
	scan->methods = &scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {.CustomName = "Hidden", .PlanCustomPath = plan};

static void
replace_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	char	   *name;
	CustomPath *path;

	if (previous)
		previous(root, rel, rti, rte);
	name = rte->rtekind == RTE_RELATION && !rte->inh ? get_rel_name(rte->relid) : NULL;
	if (name == NULL || strncmp(name, "hidden", 6) != 0)
		return;
	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.rows = 1;
	/* Dear, as a scan of many columns: by cost alone, another path would win. */
	path->path.total_cost = 1e6;
	path->methods = &path_methods;
	rel->pathlist = list_make1(path);
	rel->partial_pathlist = NIL;
}

void
_PG_init(void)
{
	previous = set_rel_pathlist_hook;
	set_rel_pathlist_hook = replace_paths;
}
