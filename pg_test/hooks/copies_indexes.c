/*
 * An extension that makes paths of its own over copies of what the planner knows of indexes: over those that have an order.
 */
#include "postgres.h"

#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static set_rel_pathlist_hook_type previous;

static void
copy_indexes(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	ListCell   *cell;

	if (previous)
		previous(root, rel, rti, rte);
	if (rte->rtekind != RTE_RELATION || rte->inh)
		return;
	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *copy = palloc(sizeof(IndexOptInfo));

		memcpy(copy, lfirst(cell), sizeof(IndexOptInfo));
		if (copy->sortopfamily != NULL)
			add_path(rel, (Path *) create_index_path(root, copy, NIL, NIL, NIL, build_index_pathkeys(root, copy, ForwardScanDirection),
													 ForwardScanDirection, false, NULL, 1.0, false));
	}
}

void
_PG_init(void)
{
	previous = set_rel_pathlist_hook;
	set_rel_pathlist_hook = copy_indexes;
}
