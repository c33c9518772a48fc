//! How a crawl treats assets.

use crate::scripted::{self, Run, Scripted, page_of};
use crawler::Response;
use frontier::Refusal;

fn crawl_by(assets: bool, max_depth: u32, reply: impl Fn(&str) -> Response + Send + Sync + 'static) -> Run {
    let mut options = scripted::options("http://a.example/");
    options.pages.assets = assets;
    options.frontier.politeness.ask_robots = false;
    options.frontier.scope.max_depth = Some(max_depth);
    Scripted::new(move |call| Ok(reply(call.path()))).crawl(options)
}

#[test]
fn a_style_sheet_that_says_nofollow_is_obeyed_like_a_page() {
    let summary = crawl_by(true, u32::MAX, |path| match path {
        "/" => page_of("text/html", "<link rel=stylesheet href=/s>"),
        "/s" => Response {
            robots_tags: vec!["nofollow".to_owned()],
            ..page_of("text/css", "a{b:url(i)}")
        },
        _ => page_of("image/png", ""),
    })
    .summary;
    assert_eq!((summary.pages, summary.unfollowed.nofollow), (2, 1));
}

#[test]
fn a_page_is_fetched_with_its_assets_but_no_deeper_pages() {
    for (assets, max_depth, expected) in [
        (true, 0, "/ /1.css /1.png /2.css /3.png /4.png"),
        (true, 1, "/ /1.css /1.png /2.css /3.png /4.png /5.png /page"),
        (false, 1, "/ /page"),
    ] {
        let run = crawl_by(assets, max_depth, |path| match path {
            "/" => page_of(
                "text/html",
                "<link rel=stylesheet href=1.css><a href=page><img srcset='1.png, //elsewhere.example/2.png'></a>",
            ),
            "/1.css" => page_of("text/css; charset=utf-8", "@import '2.css'; a{b:url(3.png)}"),
            "/2.css" => page_of("TEXT/CSS", "a{b:url(4.png)}"),
            "/page" => page_of("text/html", "<img src=5.png><a href=below>"),
            _ => page_of("image/png", ""),
        });
        let mut requested = run.paths();
        requested.sort_unstable();
        assert_eq!(requested.join(" "), expected);
        // Refused: the page below, and the asset outside the scope.
        assert_eq!(
            run.summary.report.links.refused.values().sum::<u64>(),
            1 + u64::from(assets)
        );
    }
}

#[test]
fn an_endless_chain_of_style_sheets_ends() {
    let run = crawl_by(true, u32::MAX, |path| match path.strip_prefix("/css") {
        Some(number) => {
            let next = number.parse::<u32>().unwrap() + 1;
            page_of("text/css", format!("@import 'css{next}';"))
        }
        None => page_of("text/html", "<link rel=stylesheet href=css1>"),
    });
    assert_eq!(run.paths(), ["/", "/css1", "/css2", "/css3", "/css4", "/css5"]);
    assert_eq!(run.summary.report.links.refused[&Refusal::TooDeep], 1);
}

#[test]
fn a_redirected_image_may_be_as_deep_as_the_image_itself() {
    let run = crawl_by(true, 0, |path| match path {
        "/" => scripted::page("<img src=old.png>"),
        "/old.png" => scripted::redirect("/new.png"),
        _ => scripted::page(""),
    });
    assert_eq!(run.summary.pages, 2);
}
