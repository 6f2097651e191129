//! The menu: each entry asks for what its command needs, and does the command. Errors are shown and the menu goes on.

mod entries;

use tyo_mq_auth::json::Value;

use crate::app::App;
use crate::exit::Failure;
use crate::output::{note, print};

use entries::{ENTRIES, Entry};

/// Shows the menu until the user leaves.
pub(crate) async fn run(app: &App) -> Result<(), Failure> {
    header(app);
    list();
    loop {
        let chosen = match app.prompt.text("What to do (Enter: list, 0: leave)", "") {
            // Standard input ended: so does the menu.
            Err(Failure::Declined(_)) => return Ok(()),
            other => other?,
        };
        match chosen.as_str() {
            "" => list(),
            "0" => return Ok(()),
            number => match entry(number) {
                Some(entry) => show_failure(app, perform(app, entry).await),
                None => note("there is no such entry; Enter shows the list"),
            },
        }
    }
}

fn list() {
    for (number, what, _) in ENTRIES {
        note(&format!("{number:>3}) {what}"));
    }
    note("  0) leave");
}

fn entry(number: &str) -> Option<Entry> {
    let number: u32 = number.parse().ok()?;
    let found = ENTRIES.iter().find(|(known, _, _)| *known == number);
    found.map(|(_, _, entry)| *entry)
}

fn header(app: &App) {
    let target = &app.target;
    note(&format!("broker   {}", target.url));
    if let Some(context) = &target.context {
        note(&format!("context  {context}"));
    }
    note(&format!("env file {}", app.env.file().display()));
    note(&format!("token    {}", target.token_place()));
    let mode = if app.dry_run {
        "dry run: nothing is changed"
    } else {
        "changes are made"
    };
    note(&format!("mode     {mode}"));
}

async fn perform(app: &App, entry: Entry) -> Result<(), Failure> {
    match entry.prepare(app).await? {
        // Boxed, since a menu is a command itself.
        Some(command) => Box::pin(crate::commands::dispatch(app, command)).await,
        None => Ok(()),
    }
}

fn show_failure(app: &App, result: Result<(), Failure>) {
    if let Err(failure) = result {
        app.output.failure(&failure);
        if !app.output.json && matches!(failure, Failure::Refused { .. }) {
            print(&Value::from(failure.to_object()).to_json());
        }
    }
}
