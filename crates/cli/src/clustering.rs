//! A crawl that several processes share: joining them, `crawler cluster status` and `crawler cluster stop`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use cluster::{JoinError, Joining, LogError, Overview, OverviewError, Signal};
use crawler::{Crawl, CrawlBuilder};

use crate::failure::Failure;
use crate::options::{ClusterArgs, ClusterCommand, Site};

/// Prepares to join the other processes, if there are some. Checks first that a process with a new directory fits to them.
pub(crate) async fn joining(
    builder: &CrawlBuilder,
    site: Option<&Site>,
    is_new: bool,
) -> Result<Option<Joining>, Failure> {
    let given = site.and_then(|site| Some((site, site.cluster.clone()?, site.partition?)));
    let Some((site, address, partition)) = given else {
        return Ok(None);
    };
    let mut joining = Joining {
        address,
        partition,
        rules: builder.hash_of_rules(),
        seeds: builder.hash_of_seeds(),
        kept: Vec::new(),
        has_answered: false,
        accepts_loss: site.accept_loss,
        owner: owner(),
    };
    if is_new {
        joining = blocking(move || joining.check().map(|()| joining)).await?;
    }
    Ok(Some(joining))
}

/// Joins the other processes.
pub(crate) async fn join(crawl: Crawl, joining: Option<Joining>) -> Result<Crawl, Failure> {
    let Some(mut joining) = joining else {
        return Ok(crawl);
    };
    joining.kept = crawl.kept_of_peers().to_vec();
    Ok(crawl.share(blocking(|| joining.join()).await?)?)
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, JoinError> + Send + 'static,
) -> Result<T, Failure> {
    let ended = tokio::task::spawn_blocking(call).await;
    Ok(ended.map_err(|error| Failure::Cancelled(error.to_string()))??)
}

fn owner() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.ok().or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    format!("{} process {}", name.trim(), std::process::id())
        .trim()
        .to_owned()
}

fn signal(args: &ClusterArgs, what: Signal, to: &str) -> Result<String, OverviewError> {
    cluster::signal(args.address.clone(), what).map(|told| match told {
        1 => format!("1 process was told to {to}\n"),
        told => format!("{told} processes were told to {to}\n"),
    })
}

/// Runs a command, and prints its answer or why there is none.
pub(crate) fn run(command: &ClusterCommand) -> ExitCode {
    let answer = match command {
        ClusterCommand::Status { address, json } => Overview::read(address.clone()).map(|overview| match json {
            // Numbers and texts can always be written.
            true => serde_json::to_string(&overview).unwrap_or_default() + "\n",
            false => overview.to_string(),
        }),
        ClusterCommand::Stop(args) => signal(args, Signal::Stop, "stop"),
        ClusterCommand::Pause(args) => signal(args, Signal::Pause, "pause"),
        ClusterCommand::Unpause(args) => signal(args, Signal::Unpause, "go on"),
    };
    match answer {
        Ok(text) => crate::print(Ok(text.into_bytes())),
        Err(error) => {
            let _ = writeln!(io::stderr(), "crawler: {error}");
            ExitCode::from(match error {
                OverviewError::NoCrawl(_) | OverviewError::Log(LogError::Unreadable { .. }) => 2,
                _ => 1,
            })
        }
    }
}
