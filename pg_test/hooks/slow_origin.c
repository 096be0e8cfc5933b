/*
 * An extension by which the process that creates the replication origin goes to sleep before others see the origin, and again before that has a
 * value: as on a machine that is overloaded.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "postmaster/bgworker.h"
#include "utils/resowner.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static bool has_created = false;

static void
on_transaction(XactEvent event, void *argument)
{
	if (event == XACT_EVENT_PRE_COMMIT && MyBgworkerEntry != NULL && strstr(MyBgworkerEntry->bgw_name, "create origin") != NULL &&
		TransactionIdIsValid(GetCurrentTransactionIdIfAny()) && !has_created)
	{
		has_created = true;
		pg_usleep(1200000);
	}
}

/* When it has let go of its locks. */
static void
on_release(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *argument)
{
	static bool has_slept = false;

	if (phase == RESOURCE_RELEASE_AFTER_LOCKS && is_top_level && has_created && !has_slept)
	{
		has_slept = true;
		pg_usleep(1500000);
	}
}

void
_PG_init(void)
{
	RegisterXactCallback(on_transaction, NULL);
	RegisterResourceReleaseCallback(on_release, NULL);
}
