//! The connections to the nodes of a Redis server or a Redis Cluster.
//!
//! Neither the client for clusters of the crate `redis` is used nor its pipelines: after a timeout they wait as long for each further answer, and
//! the client does not look for the successor of a dead master.

use std::collections::{HashMap, hash_map};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fs, io};

use redis::io::tcp::TcpSettings;
use redis::{Client, Cmd, Connection, IntoConnectionInfo, RedisConnectionInfo, RedisResult};
use redis::{TlsCertificates, Value, cmd};

use super::errors;
use crate::link_log::LogError;
use crate::url::{Address, Node};

/// How long a server may take to accept a connection, and how long to answer. A call ends within a few times this, once the host's name is
/// resolved.
pub const TIMEOUT: Duration = Duration::from_secs(2);
/// The environment variable with the password of addresses that have none. It is that of redis-cli.
const PASSWORD: &str = "REDISCLI_AUTH";
/// A slot that moves takes two.
const MOST_REDIRECTS: usize = 5;

/// The nodes. A single server differs from a cluster only in that it never redirects.
pub(super) struct Nodes {
    pub(super) address: Address,
    /// The nodes of the address and those of the cluster, in the order in which they are tried.
    known: Vec<Node>,
    connections: HashMap<Node, Connection>,
    /// Where keys are, by their hash tag, once a redirect has said so.
    routes: HashMap<String, Node>,
}

impl Nodes {
    /// Connects to the first node of the address that answers.
    pub(super) fn connect(address: Address) -> Result<Self, LogError> {
        if address.has_tls {
            // The crate `redis` takes the provider of the process. If another one is installed, it is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let (known, connections, routes) = (address.nodes.clone(), HashMap::new(), HashMap::new());
        let mut nodes = Self {
            address,
            known,
            connections,
            routes,
        };
        nodes.any().map(|_| nodes)
    }

    /// Sends commands in one round trip and returns their answers. All their keys have this hash tag. An error whose text `is_nothing` counts
    /// as [`Value::Nil`]. The commands may be executed twice.
    pub(super) fn call(
        &mut self,
        tag: &str,
        commands: &[Cmd],
        is_nothing: fn(&str) -> bool,
    ) -> Result<Vec<Value>, LogError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.routes.get(tag).cloned();
        let mut node = known.map_or_else(|| self.any(), Ok)?;
        let mut is_asking = false;
        let (mut redirects, mut others) = (0..MOST_REDIRECTS, 1..self.known.len());
        loop {
            let exchanged = self.connection(&node).and_then(|connection| {
                let answers = exchange(connection, commands, is_asking);
                answers.map_err(|error| errors::of_connection(&node, &error))
            });
            let answers = exchanged.inspect_err(|_| self.forget(&node))?;
            let redirect = answers.iter().find_map(|answer| redirect(answer, &node));
            let Some((next, asks)) = redirect.filter(|_| redirects.next().is_some()) else {
                let checked = answers.into_iter().zip(commands).map(|(answer, command)| match answer {
                    Value::ServerError(error) if is_nothing(&errors::text(&error)) => Ok(Value::Nil),
                    Value::ServerError(error) => Err(errors::of_answer(&node, tag, command, &error)),
                    answer => Ok(answer),
                });
                let checked = checked.collect::<Result<_, _>>().inspect_err(|_| self.forget(&node));
                // The master may be another one.
                if let Err(LogError::NotReady { answer, .. }) = &checked
                    && ["READONLY", "MASTERDOWN", "LOADING"].contains(&answer.split(' ').next().unwrap_or_default())
                    && others.next().is_some()
                    && let Ok(other) = self.any()
                {
                    (node, is_asking) = (other, false);
                    continue;
                }
                return checked;
            };
            (node, is_asking) = (next, asks);
            if !is_asking {
                self.routes.insert(tag.to_owned(), node.clone());
            }
        }
    }

    fn any(&mut self) -> Result<Node, LogError> {
        let begin = Instant::now();
        let (server, why) = (self.address.to_string(), "it has no host".to_owned());
        let mut failed = LogError::NotReachable { server, why };
        for node in self.known.clone() {
            match self.connection(&node) {
                Ok(_) => return Ok(node),
                Err(error) => failed = error,
            }
            self.forget(&node);
            // The next call goes on with the others.
            if begin.elapsed() >= TIMEOUT {
                break;
            }
        }
        Err(failed)
    }

    fn connection(&mut self, node: &Node) -> Result<&mut Connection, LogError> {
        match self.connections.entry(node.clone()) {
            hash_map::Entry::Occupied(open) => Ok(open.into_mut()),
            hash_map::Entry::Vacant(place) => {
                let (connection, cluster) = open(&self.address, node)?;
                let named = &self.address.nodes;
                self.known.retain(|node| named.contains(node) || cluster.contains(node));
                for node in cluster {
                    if !self.known.contains(&node) {
                        self.known.push(node);
                    }
                }
                Ok(place.insert(connection))
            }
        }
    }

    /// Closes the connection to a node. The next call looks for its keys at the other nodes first.
    fn forget(&mut self, node: &Node) {
        self.connections.remove(node);
        self.routes.retain(|_, at| at != node);
        // False sorts first, and the order of equal ones stays.
        self.known.sort_by_key(|known| known == node);
    }
}

/// Opens a connection, and returns the nodes of the cluster that the node belongs to, too.
fn open(address: &Address, node: &Node) -> Result<(Connection, Vec<Node>), LogError> {
    let mut commands = Vec::new();
    let of_environment = || env::var(PASSWORD).ok().filter(|password| !password.is_empty());
    let login = address.login.clone();
    if let Some((user, password)) = login.or_else(|| Some((String::new(), of_environment()?))) {
        let user = (!user.is_empty()).then_some(user);
        commands.push(cmd("AUTH").arg(user).arg(password).take());
    }
    if address.database > 0 {
        commands.push(cmd("SELECT").arg(address.database).take());
    }
    commands.push(cmd("CLUSTER").arg("SLOTS").take());
    let opened = connect(address, node).and_then(|mut connection| {
        let answers = exchange(&mut connection, &commands, false)?;
        Ok((connection, answers))
    });
    let (connection, answers) = opened.map_err(|error| errors::of_connection(node, &error))?;
    for (answer, command) in answers.iter().zip(&commands) {
        match answer {
            // A single server has no such command, or this user may not call it.
            Value::ServerError(error) if errors::text(error).to_lowercase().contains("cluster") => {}
            Value::ServerError(error) => return Err(errors::of_answer(node, "", command, error)),
            _ => {}
        }
    }
    let cluster = answers.last().map(|slots| cluster_nodes(slots, node));
    Ok((connection, cluster.unwrap_or_default()))
}

fn connect(address: &Address, node: &Node) -> RedisResult<Connection> {
    let url = format!("{}://{node}", if address.has_tls { "rediss" } else { "redis" });
    let info = url.as_str().into_connection_info()?;
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let info = info.set_redis_settings(RedisConnectionInfo::default().set_skip_set_lib_name());
    let client = if address.has_tls {
        let read = |file: &PathBuf| {
            fs::read(file).map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", file.display())))
        };
        let (client_tls, root_cert) = (None, address.ca_file.as_ref().map(read).transpose()?);
        Client::build_with_tls(info, TlsCertificates { client_tls, root_cert })?
    } else {
        Client::open(info)?
    };
    let connection = client.get_connection_with_timeout(TIMEOUT)?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    connection.set_write_timeout(Some(TIMEOUT))?;
    Ok(connection)
}

/// Sends commands and returns their answers, or the first failure of the connection, which is out of step then. With `is_asking`, the node
/// answers for a slot that is moving to it, too.
fn exchange(connection: &mut Connection, commands: &[Cmd], is_asking: bool) -> RedisResult<Vec<Value>> {
    let mut bytes = Vec::new();
    for command in commands {
        if is_asking {
            cmd("ASKING").write_packed_command(&mut bytes);
        }
        command.write_packed_command(&mut bytes);
    }
    connection.send_packed_command(&bytes)?;
    let each = 1 + usize::from(is_asking);
    let answers: RedisResult<Vec<_>> = (0..each * commands.len()).map(|_| connection.recv_response()).collect();
    Ok(answers?.into_iter().skip(each - 1).step_by(each).collect())
}

fn redirect(answer: &Value, from: &Node) -> Option<(Node, bool)> {
    let Value::ServerError(error) = answer else {
        return None;
    };
    let is_asking = match error.code() {
        "MOVED" => false,
        "ASK" => true,
        _ => return None,
    };
    let (host, port) = error.details()?.split(' ').nth(1)?.rsplit_once(':')?;
    // A node that does not know its own host leaves it out.
    let host = if host.is_empty() { &from.host } else { host }.to_owned();
    let port = port.parse().ok()?;
    Some((Node { host, port }, is_asking))
}

fn cluster_nodes(slots: &Value, from: &Node) -> Vec<Node> {
    let servers = items(slots).iter().flat_map(|range| items(range).iter().skip(2));
    let nodes = servers.filter_map(|server| {
        let [host, Value::Int(port), ..] = items(server) else {
            return None;
        };
        let host = match host {
            Value::BulkString(host) if !host.is_empty() => String::from_utf8_lossy(host).into_owned(),
            _ => from.host.clone(),
        };
        let port = u16::try_from(*port).ok()?;
        Some(Node { host, port })
    });
    nodes.collect()
}

fn items(value: &Value) -> &[Value] {
    if let Value::Array(items) = value { items } else { &[] }
}
