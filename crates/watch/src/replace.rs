//! Replaces a file as a whole, so that no reader sees half of it.
//!
//! The new content is written to a file beside it, which then gets its name. Each writer has a name of its own there, and locks the file: what a
//! killed one has left is used again. A file that cannot be given a new name is written in place: one that is mounted into a container, or lies in a folder
//! that may not be written to.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;
/// The most writers of one file at once.
const MOST_WRITERS: usize = 100;

/// A file that is replaced as a whole.
#[derive(Debug)]
pub(crate) struct Replaceable(PathBuf);

impl Replaceable {
    /// Names a file, and checks that it can be written. One behind a link is replaced, not the link. `beginning` is that of all contents.
    ///
    /// # Errors
    ///
    /// What is there and is no file, such as a device, or begins in another way; what cannot be written.
    pub(crate) fn new(path: &Path, beginning: &str) -> io::Result<Self> {
        let file = Self(path.to_owned());
        let path = file.target()?;
        check_beginning(&path, beginning)?;
        let is_writable = OpenOptions::new().write(true).open(&path).is_ok();
        match temporary(&path).and_then(|(_, new)| fs::remove_file(new)) {
            Err(error) if !is_writable || !needs_its_place(&error) => return Err(error),
            // Its folder alone does not tell whether it can be replaced, so it is, by itself.
            _ if !is_writable && path.exists() => drop(file.replace(&fs::read(&path)?)?),
            _ => {}
        }
        Ok(file)
    }

    /// Names a file of our own.
    pub(crate) fn own(path: PathBuf) -> Self {
        Self(path)
    }

    /// Makes the file if it is not there, and locks it until it is replaced.
    ///
    /// # Errors
    ///
    /// A file that another process has locked.
    pub(crate) fn lock(&self) -> io::Result<File> {
        let path = self.target()?;
        loop {
            // To lock a file one need not be able to write it.
            let file = File::open(&path).or_else(|_| OpenOptions::new().append(true).create(true).open(&path))?;
            if is_locked_by_other(&file) {
                let why = "another crawl writes to this file: give another file, or wait until that crawl ends";
                return Err(io::Error::new(ErrorKind::ResourceBusy, why));
            }
            // The other may just have replaced it.
            if is_at(&file, &path) {
                return Ok(file);
            }
        }
    }

    /// Replaces the content. Returns the new file, which is locked; `None` if it was written in place.
    pub(crate) fn replace(&self, content: &[u8]) -> io::Result<Option<File>> {
        let path = self.target()?;
        match write_beside(&path, content) {
            Err(error) if needs_its_place(&error) && path.exists() => {
                let mut file = OpenOptions::new().write(true).open(&path)?;
                file.set_len(0)?;
                file.write_all(content).map(|()| None)
            }
            written => written.map(Some),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns what the path names, behind all links. It need not be there.
    fn target(&self) -> io::Result<PathBuf> {
        let why = "it is not a file, so it cannot be replaced: give another name";
        let no_file = || Err(io::Error::new(ErrorKind::InvalidInput, why));
        // Without a slash at its end.
        let mut path: PathBuf = self.0.components().collect();
        for _ in 0..MOST_LINKS {
            let Ok(target) = fs::read_link(&path) else {
                return match fs::symlink_metadata(&path) {
                    Ok(found) if !found.is_file() => no_file(),
                    _ => Ok(path),
                };
            };
            let folder = path.parent().unwrap_or(Path::new(""));
            // What a link of `/proc` says need not be a name: standard output may be a pipe, and its file may have no name.
            if folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
                return no_file();
            }
            path = folder.join(target);
        }
        Err(io::Error::new(ErrorKind::InvalidInput, "its links lead to no file"))
    }
}

/// Writes a file beside another one, and gives it the name, the owner and the permissions of that.
fn write_beside(path: &Path, content: &[u8]) -> io::Result<File> {
    let (mut file, new) = temporary(path)?;
    keep_owner(&file, path);
    let written = file.write_all(content).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.map(|()| file)
}

/// Makes an empty file beside another one, which only this writer has for as long as it is open. The node exporter reads all files that end in `.prom`, so this
/// one must not.
fn temporary(path: &Path) -> io::Result<(File, PathBuf)> {
    for number in 0..MOST_WRITERS {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".new{number}"));
        let new = path.with_file_name(name);
        if fs::symlink_metadata(&new).is_ok_and(|found| !found.is_file()) {
            continue;
        }
        let file = match OpenOptions::new().write(true).create(true).truncate(false).open(&new) {
            // Another user has left it.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && new.exists() => continue,
            file => file?,
        };
        // Another writer may have renamed it since, and what has its name is not to be touched then.
        if !is_locked_by_other(&file) && is_at(&file, &new) {
            file.set_len(0)?;
            return Ok((file, new));
        }
    }
    Err(io::Error::new(ErrorKind::ResourceBusy, "too many programs write it"))
}

fn needs_its_place(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ResourceBusy
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::CrossesDevices
    )
}

/// Locks a file for as long as it is open, unless another one has. Some file systems have no locks.
fn is_locked_by_other(file: &File) -> bool {
    // The locks of Windows would keep readers away, too.
    cfg!(unix) && matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Returns whether a path still names an open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    file.metadata()
        .is_ok_and(|file| fs::symlink_metadata(path).is_ok_and(|found| id(found) == id(file)))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// As far as the system allows.
fn keep_owner(file: &File, path: &Path) {
    let Ok(old) = fs::metadata(path) else { return };
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        // Only root gives files away.
        if fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
            let _ = fchown(file, None, Some(old.gid()));
        }
    }
    let _ = file.set_permissions(old.permissions());
}

/// Checks that a file is not there, is empty, or begins as ours do: another one would be lost, such as the database of a crawl.
fn check_beginning(path: &Path, beginning: &str) -> io::Result<()> {
    let mut found = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?.take(beginning.len() as u64).read_to_end(&mut found)?,
    };
    if beginning.as_bytes().starts_with(&found) {
        return Ok(());
    }
    let why = format!(
        "{} holds something else, and is not replaced: give another name",
        path.display()
    );
    Err(io::Error::new(ErrorKind::AlreadyExists, why))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    /// A folder of one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("watch-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_no_file_is_refused_and_stays() {
        let folder = Folder::new("kinds");
        let fifo = folder.0.join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let socket = folder.0.join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = folder.0.join("link");
        symlink("/dev/null", &link).unwrap();
        let before = folder.names();
        // The file of a descriptor has no name, or may lose it.
        let file = File::create(folder.0.join("gone")).unwrap();
        let (_, writer) = io::pipe().unwrap();
        let of = |fd: std::os::fd::RawFd| PathBuf::from(format!("/proc/self/fd/{fd}"));
        let descriptors = [of(file.as_raw_fd()), of(writer.as_raw_fd())];
        let descriptors = descriptors.iter().filter(|_| cfg!(target_os = "linux"));
        let paths = [&fifo, &socket, &link, Path::new("/dev/null"), &folder.0];
        for path in paths.into_iter().chain(descriptors.map(PathBuf::as_path)) {
            let refused = Replaceable::new(path, "").unwrap_err().to_string();
            assert!(refused.contains("is not a file"), "{}: {refused}", path.display());
            // It may come later.
            let refused = Replaceable::own(path.to_owned()).replace(b"x").unwrap_err().to_string();
            assert!(refused.contains("is not a file"), "{}: {refused}", path.display());
        }
        fs::remove_file(folder.0.join("gone")).unwrap();
        assert_eq!(folder.names(), before);
        let around = folder.0.join("around");
        symlink("around", &around).unwrap();
        assert!(Replaceable::new(&around, "").unwrap_err().to_string().contains("links"));
    }

    #[test]
    fn links_stay_and_what_they_name_is_made_or_replaced() {
        let folder = Folder::new("links");
        fs::create_dir(folder.0.join("below")).unwrap();
        symlink("below/second", folder.0.join("first")).unwrap();
        symlink("file", folder.0.join("below/second")).unwrap();
        let file = Replaceable::new(&folder.0.join("first"), "x").unwrap();
        let target = folder.0.join("below/file");
        assert!(!target.exists(), "a check makes nothing");
        for content in ["x one", "x two"] {
            file.replace(content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), content);
        }
        assert!(folder.0.join("first").is_symlink() && folder.0.join("below/second").is_symlink());
        assert_eq!(fs::read_dir(folder.0.join("below")).unwrap().count(), 2);
    }

    #[test]
    fn a_name_with_a_slash_behind_it_is_that_of_a_file() {
        let folder = Folder::new("slash");
        let file = Replaceable::new(&folder.0.join("file/"), "").unwrap();
        file.replace(b"new").unwrap();
        assert_eq!(folder.names(), ["file"]);
    }

    #[test]
    fn owner_and_permissions_stay() {
        let folder = Folder::new("owner");
        let path = folder.0.join("file");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let is_root = std::os::unix::fs::chown(&path, Some(1234), Some(4321)).is_ok();
        let old = fs::metadata(&path).unwrap();
        Replaceable::own(path.clone()).replace(b"new").unwrap();
        let new = fs::metadata(&path).unwrap();
        assert_ne!(new.ino(), old.ino());
        let of = |found: &fs::Metadata| (found.mode(), found.uid(), found.gid());
        assert_eq!(of(&new), of(&old));
        assert!(!is_root || new.uid() == 1234);
    }

    #[test]
    fn writers_at_once_leave_whole_files_and_no_others_and_what_a_kill_has_left_is_used_again() {
        let folder = Folder::new("writers");
        let path = folder.0.join("file");
        fs::write(folder.0.join(".file.new0"), "what a killed one has left").unwrap();
        fs::create_dir(folder.0.join(".file.new1")).unwrap();
        let whole = |byte: u8| vec![byte; 50_000];
        Replaceable::own(path.clone()).replace(&whole(0)).unwrap();
        let written = AtomicUsize::new(0);
        thread::scope(|scope| {
            for byte in 0..4 {
                let (path, written) = (&path, &written);
                scope.spawn(move || {
                    for _ in 0..200 {
                        Replaceable::own(path.clone()).replace(&whole(byte)).unwrap();
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while written.load(Ordering::Relaxed) < 800 {
                let read = fs::read(&path).unwrap();
                assert!(read.len() == 50_000 && read.iter().all(|byte| *byte == read[0]));
            }
        });
        assert_eq!(folder.names(), [".file.new1", "file"]);
    }

    #[test]
    fn a_locked_file_is_locked_through_its_replacements() {
        let folder = Folder::new("lock");
        let file = Replaceable::own(folder.0.join("file"));
        let mut held = file.lock().unwrap();
        for _ in 0..3 {
            assert_eq!(file.lock().unwrap_err().kind(), ErrorKind::ResourceBusy);
            held = file.replace(b"new").unwrap().unwrap();
        }
        drop(held);
        drop(file.lock().unwrap());
    }

    /// Names the folder of a user who is not root, in the process that tests it.
    const OF_USER: &str = "CRAWLER_TEST_FOLDER";
    const USER: u32 = 65_534;

    #[test]
    fn permissions_are_found_out_before_the_first_content_and_what_others_have_left_stays() {
        let Some(folder) = std::env::var_os(OF_USER).map(PathBuf::from) else {
            let folder = Folder::new("user");
            let make = |name: &str, owner, mode| {
                let path = folder.0.join(name);
                let is_folder = !name.contains('/');
                let made = if is_folder {
                    fs::create_dir(&path)
                } else {
                    fs::write(&path, "x")
                };
                made.unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                std::os::unix::fs::chown(&path, Some(owner), None).is_ok()
            };
            let is_root = make("own", USER, 0o755)
                && make("own/.file.new0", 0, 0o644)
                && make("own/of-root", 0, 0o644)
                && make("sticky", 0, 0o1777)
                && make("sticky/file", 0, 0o644)
                && make("closed", 0, 0o755)
                && make("closed/file", USER, 0o644)
                && make("closed/.file.new0", USER, 0o644);
            if !is_root {
                return eprintln!("NOT TESTED: it takes root to make files of two users");
            }
            let name =
                "replace::tests::permissions_are_found_out_before_the_first_content_and_what_others_have_left_stays";
            let mut test = Command::new(std::env::current_exe().unwrap());
            let ended = test.args(["--exact", name]).env(OF_USER, &folder.0).uid(USER).output();
            match ended {
                Ok(ended) => assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout)),
                Err(error) => eprintln!("NOT TESTED: another user cannot run this program: {error}"),
            }
            return;
        };
        for (path, is_replaced) in [("own/file", true), ("own/of-root", true), ("closed/file", false)] {
            let file = Replaceable::new(&folder.join(path), "x").unwrap();
            assert_eq!(file.replace(b"x new").unwrap().is_some(), is_replaced, "{path}");
            assert_eq!(fs::read(folder.join(path)).unwrap(), b"x new");
        }
        assert!(folder.join("own/.file.new0").exists());
        for path in ["sticky/file", "closed/none"] {
            let kinds = [
                Replaceable::new(&folder.join(path), "x").unwrap_err().kind(),
                Replaceable::own(folder.join(path)).replace(b"x").unwrap_err().kind(),
            ];
            assert_eq!(kinds, [ErrorKind::PermissionDenied; 2], "{path}");
        }
    }

    /// Names a file that is mounted where it lies, in the process that tests it.
    const MOUNTED: &str = "CRAWLER_TEST_MOUNTED";

    #[test]
    fn a_file_that_is_mounted_is_written_in_place() {
        if let Some(path) = std::env::var_os(MOUNTED).map(PathBuf::from) {
            let before = fs::metadata(&path).unwrap().ino();
            let file = Replaceable::new(&path, "x").unwrap();
            for content in ["x longer", "x"] {
                assert!(file.replace(content.as_bytes()).unwrap().is_none());
                assert_eq!(fs::read_to_string(&path).unwrap(), content);
            }
            assert_eq!(fs::metadata(&path).unwrap().ino(), before);
            let read_only = ["-o", "remount,bind,ro"];
            assert!(
                Command::new("mount")
                    .args(read_only)
                    .arg(&path)
                    .status()
                    .unwrap()
                    .success()
            );
            let refused = Replaceable::new(&path, "x").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem, "{refused}");
            return;
        }
        let folder = Folder::new("mounted");
        let path = folder.0.join("file");
        fs::write(&path, "x before").unwrap();
        let script = "mount --bind \"$1\" \"$1\" || exit 77; exec \"$0\" --exact replace::tests::a_file_that_is_mounted_is_written_in_place";
        let ended = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", script])
            .args([std::env::current_exe().unwrap(), path.clone()])
            .env(MOUNTED, &path)
            .output();
        match ended {
            Ok(ended) if ended.status.success() => {
                assert_eq!(fs::read_to_string(&path).unwrap(), "x");
                assert_eq!(folder.names(), ["file"]);
            }
            Ok(ended) if ended.status.code() == Some(101) => panic!("{}", String::from_utf8_lossy(&ended.stdout)),
            other => eprintln!("NOT TESTED: nothing can be mounted here: {other:?}"),
        }
    }
}
