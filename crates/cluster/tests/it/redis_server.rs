//! A server of Redis for one test. The tests of the command use it, too.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// A server in a folder of its own, which ends with the test.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) folder: PathBuf,
    options: &'static str,
    process: Child,
}

impl Server {
    /// Starts a server with these options.
    pub(crate) fn start(options: &'static str) -> Self {
        Self::start_at(free_port(), options)
    }

    pub(crate) fn start_at(port: u16, options: &'static str) -> Self {
        let folder = std::env::temp_dir().join(format!("crawler-redis-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let process = spawn(port, &folder, options);
        let server = Self {
            port,
            folder,
            options,
            process,
        };
        server.wait();
        server
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.kill();
        self.process = spawn(self.port, &self.folder, self.options);
        self.wait();
    }

    /// Sends a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Runs `redis-cli` and returns what it prints.
    pub(crate) fn cli(&self, arguments: &str) -> String {
        let port = self.port.to_string();
        let mut command = Command::new("redis-cli");
        let output = command.args(["-p", &port]).args(arguments.split(' ')).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{arguments}: {text}");
        text.trim_end().to_owned()
    }

    /// Returns host and port.
    pub(crate) fn at(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Waits until the server answers.
    fn wait(&self) {
        eventually(|| {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
            stream.write_all(b"PING\r\n").ok()?;
            let mut answer = [0; 64];
            let length = stream.read(&mut answer).ok()?;
            (!answer[..length].starts_with(b"-LOADING")).then_some(())
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn spawn(port: u16, folder: &Path, options: &str) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
    command
        .arg("--dir")
        .arg(folder)
        .args(options.split_whitespace())
        .stdout(Stdio::null());
    let spawned = command.spawn();
    spawned.expect("these tests need redis-server and redis-cli: install the package redis-server")
}

/// Returns a port that no other test gets. The one by 10 000 above it is free, too: there the nodes of a cluster meet.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Below those that the system gives to connections.
    let first = 10_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}

/// Repeats a call for a minute at most, until it succeeds.
#[track_caller]
pub(crate) fn eventually<T>(mut call: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = call() {
            return value;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "it never succeeds");
        thread::sleep(Duration::from_millis(20));
    }
}
