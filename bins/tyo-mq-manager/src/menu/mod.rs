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
    let items: Vec<(u32, &str)> = ENTRIES
        .iter()
        .map(|(number, what, _)| (*number, *what))
        .chain([(0, "leave")])
        .collect();
    loop {
        let chosen = match app.prompt.choose("What to do", &items) {
            // Standard input ended: so does the menu.
            Err(Failure::Declined(_)) => return Ok(()),
            other => other?,
        };
        match chosen {
            Some(0) => return Ok(()),
            None => note("there is no such entry"),
            Some(number) => {
                let entry = ENTRIES.iter().find(|(known, _, _)| *known == number);
                if let Some((_, _, entry)) = entry {
                    show_failure(app, perform(app, *entry).await);
                }
            }
        }
    }
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
