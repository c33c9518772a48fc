//! What errors of the client and of the server mean.

use redis::{Arg, Cmd, ErrorKind, RedisError, ServerError};

use super::TIMEOUT;
use crate::link_log::LogError;
use crate::url::Node;

pub(super) fn of_connection(node: &Node, error: &RedisError) -> LogError {
    let (server, text) = (node.to_string(), error.to_string());
    if error.kind() == ErrorKind::Parse {
        return LogError::Other { server, answer: text };
    }
    let why = if error.is_timeout() {
        format!("no answer within {} s", TIMEOUT.as_secs())
    } else if text.contains("UnknownIssuer") {
        format!("{text}; ssl_ca_certs=FILE in the address says whom to trust")
    } else {
        text
    };
    LogError::NotReachable { server, why }
}

pub(super) fn of_answer(node: &Node, tag: &str, command: &Cmd, error: &ServerError) -> LogError {
    let (server, answer) = (node.to_string(), text(error));
    match error.code() {
        "WRONGTYPE" => LogError::Unreadable {
            server,
            key: keys(tag, command),
        },
        "OOM" => LogError::OutOfMemory { server },
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" => LogError::Refused { server, answer },
        // "ERR AUTH <password> called without any password configured".
        "ERR" if answer.contains("AUTH") => LogError::Refused { server, answer },
        "ERR" if answer.contains("max number of clients") => LogError::NotReady { server, answer },
        "MOVED" | "ASK" | "READONLY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "MISCONF"
        | "NOREPLICAS" => LogError::NotReady { server, answer },
        _ => LogError::Other { server, answer },
    }
}

pub(super) fn text(error: &ServerError) -> String {
    format!("{} {}", error.code(), error.details().unwrap_or_default())
}

fn keys(tag: &str, command: &Cmd) -> String {
    let keys = command.args_iter().filter_map(|argument| match argument {
        Arg::Simple(bytes) => str::from_utf8(bytes).ok().filter(|text| text.contains(tag)),
        _ => None,
    });
    let keys: Vec<_> = keys.collect();
    keys.join(", ")
}
