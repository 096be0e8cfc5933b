/*
 * An extension by which the process that creates the replication origin goes to sleep as soon as others see the origin, before that has a value:
 * as on a machine that is overloaded.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "postmaster/bgworker.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static void
on_transaction(XactEvent event, void *argument)
{
	if (event == XACT_EVENT_COMMIT && MyBgworkerEntry != NULL && strstr(MyBgworkerEntry->bgw_name, "create origin") != NULL)
		pg_usleep(1500000);
}

void
_PG_init(void)
{
	RegisterXactCallback(on_transaction, NULL);
}
