/*
 * An extension that plans with copies of what the planner knows of indexes: of an index that has an order, also with copies of its arrays and
 * expressions. It makes a path over each copy, and leaves one more copy among the indexes of the table.
 */
#include "postgres.h"

#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static set_rel_pathlist_hook_type previous;

/* At the end of its memory: whoever reads what is before it, or behind it, reads what is not its own. */
static void *
copy_array(const void *array, size_t size)
{
	char	   *memory;

	if (array == NULL)
		return NULL;
	memory = palloc(1024 + size);
	memset(memory, 0x7f, 1024);
	memcpy(memory + 1024, array, size);
	return memory + 1024;
}

static IndexOptInfo *
copy_index(IndexOptInfo *index)
{
	IndexOptInfo *copy = copy_array(index, sizeof(IndexOptInfo));

	copy->indexkeys = copy_array(index->indexkeys, index->ncolumns * sizeof(int));
	copy->indexcollations = copy_array(index->indexcollations, index->nkeycolumns * sizeof(Oid));
	copy->opfamily = copy_array(index->opfamily, index->nkeycolumns * sizeof(Oid));
	copy->opcintype = copy_array(index->opcintype, index->nkeycolumns * sizeof(Oid));
	copy->sortopfamily = copy_array(index->sortopfamily, index->nkeycolumns * sizeof(Oid));
	copy->reverse_sort = copy_array(index->reverse_sort, index->nkeycolumns * sizeof(bool));
	copy->nulls_first = copy_array(index->nulls_first, index->nkeycolumns * sizeof(bool));
	copy->canreturn = copy_array(index->canreturn, index->ncolumns * sizeof(bool));
	copy->indexprs = (List *) copyObjectImpl(index->indexprs);
	copy->indpred = (List *) copyObjectImpl(index->indpred);
	copy->indextlist = (List *) copyObjectImpl(index->indextlist);
	return copy;
}

static void
copy_indexes(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	ListCell   *cell;
	List	   *copies = NIL;

	if (previous)
		previous(root, rel, rti, rte);
	if (rte->rtekind != RTE_RELATION || rte->inh)
		return;
	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *copy = copy_index(lfirst(cell));

		if (copy->sortopfamily != NULL)
			add_path(rel, (Path *) create_index_path(root, copy, NIL, NIL, NIL, build_index_pathkeys(root, copy, ForwardScanDirection),
													 ForwardScanDirection, false, NULL, 1.0, false));
		copies = lappend(copies, copy);
	}
	rel->indexlist = list_concat(copies, rel->indexlist);
}

void
_PG_init(void)
{
	previous = set_rel_pathlist_hook;
	set_rel_pathlist_hook = copy_indexes;
}
