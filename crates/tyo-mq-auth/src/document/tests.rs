//! Loading, merging, changing and showing the auth settings.
