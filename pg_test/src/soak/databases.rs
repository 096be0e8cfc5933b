//! Databases that are dumped, restored or copied; an extension that is dropped and created; an origin that is dropped.

use super::{DATABASES, Extra, LOOSE, Soak, Which};
use crate::check::wait_for;
use crate::dump::{Dump, Format};
use crate::history::Trouble;
use crate::{Stop, ids, value};
use postgres::Client;

impl Soak<'_> {
    pub(super) fn new_name(&mut self) -> String {
        self.created += 1;
        format!("extra{}", self.created)
    }

    pub(super) fn any_database(&mut self) -> String {
        let extras = self.extras.iter().filter(|extra| extra.server == Which::Primary).map(|extra| extra.name.clone());
        let all: Vec<String> = DATABASES.map(str::to_owned).into_iter().chain(extras).collect();
        self.random.choice(all).unwrap()
    }

    pub(super) fn restore_dump(&mut self) {
        let (from, server, name, since) = (self.any_database(), self.any_server(), self.new_name(), self.history.now());
        let dump = Dump::new(self.server(Which::Primary), &from, Format::Plain);
        let target = self.server(server);
        target.client().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        dump.restore(target, &name);
        self.extras.push(Extra { server, name, since });
    }

    pub(super) fn copy_database(&mut self) {
        let (from, name, since) = (self.any_database(), self.new_name(), self.history.now());
        let paused = self.pause();
        let mut client = self.server(Which::Primary).client();
        let others = format!("FROM pg_stat_activity WHERE datname = '{from}'");
        client.batch_execute(&format!("SELECT pg_terminate_backend(pid) {others}")).unwrap();
        wait_for("sessions that were terminated end", || {
            value(&mut client, &format!("SELECT NOT EXISTS (SELECT {others})"))
        });
        client.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {from}")).unwrap();
        drop(paused);
        self.extras.push(Extra { server: Which::Primary, name, since });
    }

    pub(super) fn recreate_extension(&mut self) {
        let loose = |soak: &Self| -> Client { soak.server(Which::Primary).client_once_up(LOOSE) };
        let begin = self.history.now();
        loose(self).batch_execute("DROP EXTENSION pg_snowflake").unwrap();
        match self.random.u32(..4) {
            0 => self.kill_session(Which::Primary),
            1 => self.restart(Which::Primary, Stop::Fast),
            2 => self.restart(Which::Primary, Stop::Kill),
            _ => self.sleep(0, 300),
        }
        loose(self).batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
        self.history.trouble(Trouble::Extension, self.line(Which::Primary), begin);
    }

    /// It comes back with the next reservation; until then, the server must not crash.
    pub(super) fn drop_origin(&mut self) {
        // Refused while a session writes to it.
        let drop = "SELECT pg_replication_origin_drop('snowflake')";
        self.server(Which::Primary).retry(|client| client.batch_execute(drop));
        wait_for("the origin comes back", || {
            let query = "SELECT EXISTS (
                SELECT FROM pg_replication_origin_status WHERE external_id = 'snowflake' AND remote_lsn <> '0/0')";
            self.take_id(Which::Primary);
            self.server(Which::Primary).retry(|client| client.query_one(query, &[])).get(0)
        });
    }

    /// All databases that were created make IDs. Where there are more than three, the oldest is dropped.
    pub(super) fn use_extras(&mut self) {
        for Extra { server, name, since } in &self.extras {
            let place = self.place(*server);
            let mut client = self.servers[place.index].client_once_up(name);
            // A dump from a server whose clock was ahead makes a database wait for that time.
            client.batch_execute("SET pg_snowflake.max_wait = '2s'").unwrap();
            for query in ["SELECT snowflake_next(200)", "INSERT INTO stored (session) VALUES (-1) RETURNING id"] {
                let begin = self.history.now();
                match client.query(query, &[]) {
                    Ok(rows) => self.calls.given(place, begin, &ids(&rows)),
                    Err(error) => {
                        self.calls.failed(place, begin, &error);
                        self.history.trouble(Trouble::Restored, Some(place.line), *since);
                        break;
                    }
                }
            }
        }
        if self.extras.len() > 3 {
            let Extra { server, name, .. } = self.extras.remove(0);
            self.server(server).client().batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).unwrap();
        }
    }
}
