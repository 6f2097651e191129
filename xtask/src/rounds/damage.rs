//! A damaged SQLite file: the broker says so and leaves it alone, or keeps it aside, and never ends in a panic.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::consumer::{AckPolicy, Consumer, Identity};
use super::drain::{finish, introduce};
use super::ledger::{Ledger, Order, Seq, Tally};
use super::load::{live_round_trips, publish};
use super::random::Random;
use super::stage::Stage;

/// What happens to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// Its first bytes are something else.
    NoDatabase,
    /// Its second half is missing.
    Cut,
    /// Bytes in its middle are something else.
    Garbled,
    /// The same, while the broker runs.
    GarbledInUse,
}

const DAMAGES: [Damage; 4] = [
    Damage::NoDatabase,
    Damage::Cut,
    Damage::Garbled,
    Damage::GarbledInUse,
];

/// The consumer whose messages are in the file.
const AWAY: &str = "away";

/// A consumer that gets nothing for so long gets no more.
const SILENCE: Duration = Duration::from_millis(500);

/// Messages in the file.
const MESSAGES: u64 = 200;

/// Bytes overwritten.
const GARBAGE: usize = 3 * 4096;

/// Plain messages that must arrive beside a damaged file.
const LIVE: u64 = 20;

pub(super) fn round(stage: &mut Stage, random: &mut Random) -> Result<Tally> {
    let consumers = [Identity::alone(AWAY)];
    let mut ledger = Ledger::default();
    stage.start()?;
    introduce(stage, &consumers, &mut ledger)?;
    for n in 0..MESSAGES {
        publish(stage.addr()?, Seq { producer: 0, n }, &mut ledger)?;
    }
    let whole = stage.data().join("whole");
    // Stopped well, everything is in the one file.
    stage.stop()?;
    fs::copy(stage.file(), &whole)?;
    let damage = *random.pick(&DAMAGES);
    let problem = match damage {
        Damage::GarbledInUse => in_use(stage, random),
        _ => at_start(stage, random, damage),
    };
    problem.with_context(|| format!("{damage:?}"))?;
    put_back(stage, &whole)?;
    stage.start()?;
    finish(stage, &consumers, ledger, Order::PerProducer)
}

/// Refused with the file's name, or started beside a copy of it.
fn at_start(stage: &mut Stage, random: &mut Random, damage: Damage) -> Result<()> {
    harm(&stage.file(), random, damage)?;
    let damaged = fs::read(stage.file())?;
    match stage.try_start()? {
        Err(said) => {
            let name = stage.file();
            let name = name.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| said.contains(name)) {
                bail!("the refusal does not name the file: {said}");
            }
            if fs::read(stage.file())? != damaged {
                bail!("the damaged file was changed by a start that refused it");
            }
            Ok(())
        }
        Ok(addr) => {
            let is_aside = |path: &Path| fs::read(path).is_ok_and(|bytes| bytes == damaged);
            let mut files = fs::read_dir(stage.data())?.filter_map(Result::ok);
            if !files.any(|file| is_aside(&file.path())) {
                bail!("it started, and the damaged file is nowhere");
            }
            live_round_trips(addr, LIVE)?;
            stage.ensure_alive()?;
            stage.kill()
        }
    }
}

/// Whatever reading gives, the broker lives and plain messages arrive.
fn in_use(stage: &mut Stage, random: &mut Random) -> Result<()> {
    let addr = stage.start()?;
    harm(&stage.file(), random, Damage::Garbled)?;
    // Confirmed or refused, but answered: what is in the file now is nobody's promise.
    let mut nobodys = Ledger::default();
    for n in 0..LIVE {
        if let Err(error) = publish(addr, Seq { producer: 1, n }, &mut nobodys) {
            println!("    a message beside the damaged file: {error:#}");
            break;
        }
    }
    let policy = AckPolicy::all();
    let mut reader = Consumer::join(addr, &Identity::alone(AWAY), stage.life(), policy)?;
    while reader.step(SILENCE)? {}
    live_round_trips(addr, LIVE)?;
    stage.ensure_alive()?;
    stage.kill()?;
    // Whether the damage is found depends on where it is.
    match stage.try_start()? {
        Ok(addr) => {
            live_round_trips(addr, LIVE)?;
            stage.kill()
        }
        Err(_) => Ok(()),
    }
}

fn harm(file: &Path, random: &mut Random, damage: Damage) -> Result<()> {
    let mut bytes = fs::read(file)?;
    let half = bytes.len() / 2;
    if half < GARBAGE {
        bail!("the file is too small to be damaged: {} bytes", bytes.len());
    }
    match damage {
        Damage::NoDatabase => bytes[..100].fill(b'?'),
        Damage::Cut => bytes.truncate(half),
        Damage::Garbled | Damage::GarbledInUse => {
            for byte in &mut bytes[half..half + GARBAGE] {
                *byte = random.next().to_le_bytes()[0];
            }
        }
    }
    fs::write(file, bytes)?;
    Ok(())
}

fn put_back(stage: &Stage, whole: &Path) -> Result<()> {
    for file in fs::read_dir(stage.data())?.filter_map(Result::ok) {
        if file.path() != whole {
            fs::remove_file(file.path())?;
        }
    }
    fs::copy(whole, stage.file())?;
    Ok(())
}
