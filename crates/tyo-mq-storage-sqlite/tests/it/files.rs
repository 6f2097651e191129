//! Opening and copying: broken files, newer ones, durability, backups.

use std::fs;

use rusqlite::Connection;
use tyo_mq_core::store::{Store, StoreError};
use tyo_mq_storage::SqliteConfig;
use tyo_mq_storage_sqlite::SqliteStore;

use crate::{enqueue, file, messages, open, queue};

fn refusal(path: &std::path::Path) -> StoreError {
    SqliteStore::open(&SqliteConfig::new(path)).expect_err("the file is refused")
}

#[tokio::test]
async fn a_newer_file_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    let conn = Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 2).unwrap();
    drop(conn);
    let before = fs::read(&path).unwrap();
    let refused = refusal(&path);
    assert!(matches!(refused, StoreError::NewerVersion(_)), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    fs::write(
        &path,
        "this is no database, but long enough to be looked at as one".repeat(100),
    )
    .unwrap();
    let before = fs::read(&path).unwrap();
    let refused = refusal(&path);
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_broken_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    let store = open(&path);
    let queue = queue("k");
    store
        .execute(
            (0..2000)
                .map(|number| enqueue(&queue, &format!("m{number}")))
                .collect(),
        )
        .await;
    store.close().await;
    let mut bytes = fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4096).skip(3) {
        page[..64].fill(0xff);
    }
    fs::write(&path, bytes).unwrap();
    let refused = refusal(&path);
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused}");
}

#[tokio::test]
async fn a_foreign_table_of_our_name_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE messages (x)")
        .unwrap();
    assert!(SqliteStore::open(&SqliteConfig::new(&path)).is_err());
}

#[tokio::test]
async fn a_path_that_cannot_be_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let refused = refusal(&dir.path().join("no/such/folder/q.sqlite"));
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
}

#[tokio::test]
async fn a_backup_is_whole_while_work_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let queue = queue("k");
    store
        .execute(
            (0..500)
                .map(|number| enqueue(&queue, &format!("m{number}")))
                .collect(),
        )
        .await;
    let copy = dir.path().join("copy.sqlite");
    fs::write(&copy, "an older copy").unwrap();
    let more = (500..1000)
        .map(|number| enqueue(&queue, &format!("m{number}")))
        .collect();
    let (backed_up, results) = tokio::join!(store.backup(&copy), store.execute(more));
    backed_up.unwrap();
    assert!(results.iter().all(Result::is_ok));
    let restored = open(&copy);
    let kept = messages(&restored, &queue).await.len();
    assert!((500..=1000).contains(&kept), "{kept}");
    assert_eq!(messages(&store, &queue).await.len(), 1000);
    assert_eq!(
        fs::read_dir(dir.path())
            .unwrap()
            .filter(|it| it
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .ends_with(".part"))
            .count(),
        0
    );
    restored.close().await;
    store.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn new_files_are_their_owners_alone_and_old_ones_keep_their_rights() {
    use std::os::unix::fs::PermissionsExt;
    let rights = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (file(&dir), dir.path().join("copy.sqlite"));
    let store = open(&path);
    store.execute(vec![enqueue(&queue("k"), "a")]).await;
    store.backup(&copy).await.unwrap();
    let found: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(found.len() >= 3, "the log is there, too: {found:?}");
    for path in found {
        assert_eq!(rights(&path), 0o600, "{}", path.display());
    }
    store.close().await;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let store = open(&path);
    assert_eq!(messages(&store, &queue("k")).await.len(), 1);
    assert_eq!(rights(&path), 0o640);
    store.close().await;
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    store.close().await;
    store.close().await;
    let queue = queue("k");
    let results = store
        .execute(vec![enqueue(&queue, "a"), enqueue(&queue, "b")])
        .await;
    assert_eq!(results.len(), 2);
    assert!(
        results
            .iter()
            .all(|it| matches!(it, Err(StoreError::Unavailable(_))))
    );
    assert!(store.load().await.is_err());
    assert!(store.discard_dead_letter(None, "a".into()).await.is_err());
    assert!(
        !dir.path().join("queue.sqlite-wal").exists(),
        "the log went into the file"
    );
}
