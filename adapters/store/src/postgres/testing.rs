//! Databases for tests, on a server that exists. Each is a copy of a template, which has the schema, and is removed when it is dropped.

use std::{
    env,
    hash::{DefaultHasher, Hash, Hasher},
    mem,
    sync::Arc,
    thread,
};

use rejoinder_core::{Clock, SystemClock, TurnId, store::StoreState};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::{runtime, sync::OnceCell};

use super::{open::PostgresOptions, schema::MIGRATIONS};

/// A server on which tests make databases.
pub struct TestServer {
    /// The URL of its database `postgres`, or of another one that always exists.
    url: String,
    /// The name of the template, once it is known.
    template: OnceCell<String>,
}

impl TestServer {
    /// The options of a database without a schema.
    pub const EMPTY: &'static str = "template template0 encoding 'UTF8'";

    /// The server of the database at `url`, which always exists.
    pub fn at(url: String) -> Self {
        Self { url, template: OnceCell::new() }
    }

    /// The server that the environment variable `REJOINDER_TEST_POSTGRES` names, a URL `postgres://…`.
    pub fn named() -> Option<Self> {
        env::var("REJOINDER_TEST_POSTGRES").ok().map(Self::at)
    }

    /// Creates a database with the schema and no rows.
    ///
    /// # Panics
    /// If the server refuses that, or does not answer.
    pub async fn database(&'static self) -> TestDatabase {
        let template = self.template.get_or_init(|| self.find_template()).await;
        self.create(&format!("template {template}")).await
    }

    /// Creates a database with these options.
    ///
    /// # Panics
    /// If the server refuses that, or does not answer.
    pub async fn create(&'static self, options: &str) -> TestDatabase {
        let name = format!("rejoinder_test_{}", TurnId::new(SystemClock.now()).as_uuid().simple());
        self.execute(format!("create database {name} {options}")).await.expect("the database is created");
        TestDatabase { server: self, name }
    }

    /// Finds the template of this schema, which the first test on the server makes.
    async fn find_template(&self) -> String {
        let name = format!("rejoinder_template_{:016x}", schema());
        let mut connection = PgConnection::connect(&self.url).await.expect("the server is there");
        // Until the connection ends.
        connection.execute("select pg_advisory_lock(1)").await.expect("it is locked");
        let find = "select exists (select 1 from pg_database where datname = $1 and datistemplate)";
        let is_there: bool =
            sqlx::query_scalar(find).bind(&name).fetch_one(&mut connection).await.expect("databases are listed");
        if !is_there {
            for sql in ["drop database if exists NAME with (force)", "create database NAME EMPTY"] {
                let sql = sql.replace("NAME", &name).replace("EMPTY", Self::EMPTY);
                self.execute(sql).await.expect("the template is created");
            }
            let store = PostgresOptions::new(self.url_of(&name), Arc::new(SystemClock)).open().await;
            store.expect("the store opens").close().await;
            let done = self.execute(format!("alter database {name} is_template true"));
            done.await.expect("the template is done");
        }
        name
    }

    fn url_of(&self, database: &str) -> String {
        let (base, parameters) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let host = base.find("://").map_or(0, |at| at + "://".len());
        let host = &base[..base[host..].find('/').map_or(base.len(), |at| host + at)];
        format!("{host}/{database}?{parameters}")
    }

    /// Executes a statement in the database that always exists.
    async fn execute(&self, sql: String) -> Result<(), sqlx::Error> {
        let mut connection = PgConnection::connect(&self.url).await?;
        connection.execute(AssertSqlSafe(sql)).await?;
        connection.close().await
    }
}

/// A database of one test. Dropping it ends its connections and removes it.
pub struct TestDatabase {
    server: &'static TestServer,
    name: String,
}

impl TestDatabase {
    /// Its URL. It ends with the parameters of that of the server, after a `?`.
    pub fn url(&self) -> String {
        self.server.url_of(&self.name)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server, mem::take(&mut self.name));
        // The runtime of the test may have no other thread than this one.
        let removing = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime is built");
            runtime.block_on(server.execute(format!("drop database {name} with (force)")))
        });
        // A test that has failed already must not fail again.
        if !matches!(removing.join(), Ok(Ok(()))) {
            eprintln!("the database of this test is left on the server");
        }
    }
}

/// A number that changes with the schema.
fn schema() -> u64 {
    let mut hasher = DefaultHasher::new();
    for migration in MIGRATIONS.iter() {
        migration.checksum.hash(&mut hasher);
    }
    hasher.finish()
}
