//! The socket through which the process that runs takes orders, and which a file in the state directory names: one connection for each, JSON both ways.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, process};

use crawler::output::replace_file;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{Answer, Obeying};
use crate::options::OrderCommand;

/// The file that says where the socket is.
const FILE: &str = "control.json";

/// The longest order, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// How long a client may take to send an order, or to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a client waits for the answer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The most clients at a time.
const CLIENTS: usize = 16;

#[derive(Debug, Serialize, Deserialize)]
struct Control {
    socket: PathBuf,
}

/// The socket of a crawl that runs. Dropping it closes and removes it.
#[derive(Debug)]
pub(crate) struct Socket {
    control: PathBuf,
    socket: PathBuf,
    serving: JoinHandle<()>,
}

impl Socket {
    /// Opens it, or warns. Only the owner of the directory and root are answered.
    pub(crate) fn open(dir: &Path, obeying: Obeying) -> Option<Self> {
        let opened = Self::bind(dir, obeying);
        let warn = |error| log::warn!(target: "crawler::orders", "no orders are taken through the directory: {error}");
        opened.map_err(warn).ok()
    }

    fn bind(dir: &Path, obeying: Obeying) -> io::Result<Self> {
        let control = dir.join(FILE);
        // That of a process that was killed; a copy of a directory names that of the crawl that it was copied from.
        if let Ok(left) = read(&control)
            && net::UnixStream::connect(&left.socket).is_err()
        {
            let _ = fs::remove_file(left.socket);
        }
        // Not in the directory: who copies that may stumble over a socket, and its path may be too long for one.
        let runtime = env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|dir| dir.is_dir());
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("crawler-{}-{:08x}.sock", process::id(), u32::from_le_bytes(random));
        let socket = runtime.unwrap_or_else(env::temp_dir).join(name);
        let listener = UnixListener::bind(&socket)?;
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))?;
        let owner = fs::metadata(dir)?.uid();
        replace_file(&control, &serde_json::to_vec(&Control { socket: socket.clone() })?)?;
        let serving = tokio::spawn(serve(listener, owner, obeying));
        Ok(Self {
            control,
            socket,
            serving,
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.serving.abort();
        let _ = fs::remove_file(&self.control);
        let _ = fs::remove_file(&self.socket);
    }
}

async fn serve(listener: UnixListener, owner: u32, obeying: Obeying) {
    let free = Arc::new(Semaphore::new(CLIENTS));
    loop {
        let Ok(place) = Arc::clone(&free).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        if !stream.peer_cred().is_ok_and(|peer| [0, owner].contains(&peer.uid())) {
            continue;
        }
        let obeying = obeying.clone();
        tokio::spawn(async move {
            // A client that goes away is no error.
            let _ = answer(stream, &obeying).await;
            drop(place);
        });
    }
}

async fn answer(mut stream: UnixStream, obeying: &Obeying) -> io::Result<()> {
    let mut order = Vec::new();
    timeout(PATIENCE, (&mut stream).take(MOST_BYTES).read_to_end(&mut order)).await??;
    // Its sender may have gone away while this process was stopped, and has seen no answer: then nothing can be written. JSON may begin with a space.
    timeout(PATIENCE, stream.write_all(b" ")).await??;
    let answer = serde_json::to_vec(&obeying.answer(&order).await)?;
    timeout(PATIENCE, stream.write_all(&answer)).await?
}

fn read(control: &Path) -> io::Result<Control> {
    Ok(serde_json::from_slice(&fs::read(control)?)?)
}

/// Gives an order to the process that has a directory open.
pub(super) fn give(dir: &Path, command: &OrderCommand) -> io::Result<Answer> {
    let control = read(&dir.join(FILE))?;
    let mut stream = net::UnixStream::connect(control.socket)?;
    stream.set_read_timeout(Some(LONGEST_WAIT))?;
    stream.write_all(&serde_json::to_vec(command)?)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}
