//! A crawl that several processes share: joining them, `crawler cluster status` and `crawler cluster stop`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use cluster::{JoinError, Joining, Overview, OverviewError};
use crawler::Crawl;

use crate::failure::Failure;
use crate::options::{ClusterCommand, Site};

/// Joins the other processes, if there are any.
pub(crate) async fn join(crawl: Crawl, site: Option<&Site>) -> Result<Crawl, Failure> {
    let Some((site, address)) = site.and_then(|site| Some((site, site.cluster.clone()?))) else {
        return Ok(crawl);
    };
    let (Some(partition), Some(rules)) = (site.partition, crawl.hash_of_rules()) else {
        return Ok(crawl);
    };
    let joining = Joining {
        address,
        partition,
        rules,
        seeds: crawl.hash_of_seeds(),
        kept: crawl.kept_of_peers().to_vec(),
        accepts_loss: site.accept_loss,
        owner: owner(),
    };
    let joined: Result<_, JoinError> = tokio::task::spawn_blocking(|| joining.join())
        .await
        .map_err(|error| Failure::Cancelled(error.to_string()))?;
    Ok(crawl.share(joined?))
}

/// Returns the name of the machine, and the number of the process.
fn owner() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.ok().or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    format!("{} process {}", name.trim(), std::process::id())
        .trim()
        .to_owned()
}

/// Runs a command, and prints its answer or why there is none.
pub(crate) fn run(command: &ClusterCommand) -> ExitCode {
    let answer = match command {
        ClusterCommand::Status { address, json } => Overview::read(address.clone()).map(|overview| match json {
            // Numbers and texts can always be written.
            true => serde_json::to_string(&overview).unwrap_or_default() + "\n",
            false => overview.to_string(),
        }),
        ClusterCommand::Stop { address } => cluster::stop(address.clone()).map(|told| match told {
            1 => "1 process was told to stop\n".to_owned(),
            told => format!("{told} processes were told to stop\n"),
        }),
    };
    match answer {
        Ok(text) => crate::print(Ok(text.into_bytes())),
        Err(error) => {
            let _ = writeln!(io::stderr(), "crawler: {error}");
            ExitCode::from(match error {
                OverviewError::NoCrawl(_) => 2,
                _ => 1,
            })
        }
    }
}
