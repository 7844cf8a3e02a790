//! Web console: pages about recorded decisions, rendered on the server.
//!
//! [`Console`] answers requests as values and opens no socket; the program serves it. Pages are made from an index of
//! the records ([`history`]), which a [`source`] fills. Explanations, waits and the texts of decisions are those of
//! the commands `explain`, `history` and `top`. Pages work without their script, which only follows new decisions.
//!
//! Start reading at [`Console::answer`], then [`pages`].

pub mod federation;
pub mod frame;
pub mod history;
pub mod pages;
pub mod query;
pub mod rehearsal;
pub mod source;

use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;

use bulkhead_core::time::Time;
use bulkhead_journal::Stored;
use bulkhead_simulator::render::page::CSS;
use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use self::frame::{Page, View};
use self::history::{History, Row};
use self::pages::what_if::Played;
use self::pages::{binding, bindings, decision, map, plugins, problem, timeline, what_if};
use self::query::Parameters;
use self::rehearsal::{Loss, Rehearsal};
use self::source::Source;

/// Path of the event stream that reports new decisions. The program serves it.
pub const LIVE: &str = "/live";
/// Sources of scripts, styles and requests of the pages: only the console.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const ICON: &str = include_str!("icon.svg");
/// Share of the time that reads may take: one part in this many.
const READ_SHARE: u32 = 10;

/// Console over a source of records.
pub struct Console {
    source: Box<dyn Source>,
    rehearsal: Option<Box<dyn Rehearsal>>,
    now: fn() -> Time,
    history: RwLock<History>,
    reads: Mutex<Reads>,
}

/// Result of the last read of the source.
#[derive(Default)]
struct Reads {
    /// Earliest time of the next read.
    next: Option<Instant>,
    problems: Vec<String>,
}

impl Console {
    /// Returns a console over a source. `now` returns the current time.
    pub fn new(source: impl Source, now: fn() -> Time) -> Self {
        Self {
            source: Box::new(source),
            rehearsal: None,
            now,
            history: RwLock::default(),
            reads: Mutex::default(),
        }
    }

    /// Adds rehearsals of a loss of clusters.
    #[must_use]
    pub fn with_rehearsal(self, rehearsal: impl Rehearsal) -> Self {
        Self {
            rehearsal: Some(Box::new(rehearsal)),
            ..self
        }
    }

    /// Reads the source now.
    ///
    /// # Errors
    ///
    /// Nothing can be read.
    pub fn read(&self) -> anyhow::Result<()> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        self.read_into(&mut reads)
    }

    fn read_into(&self, reads: &mut Reads) -> anyhow::Result<()> {
        let start = Instant::now();
        // Records are added as they are read, because a journal has more of them than there is memory.
        let mut history = None;
        let lock = || self.history.write().unwrap_or_else(PoisonError::into_inner);
        let read = self
            .source
            .read_new(&mut |place, news| history.get_or_insert_with(lock).add(place, news));
        if let Some(mut history) = history {
            history.finish();
        }
        reads.next = Some(Instant::now() + (start.elapsed() * READ_SHARE).max(self.source.pause()));
        match read {
            Ok(problems) => {
                reads.problems = problems;
                Ok(())
            }
            Err(error) => {
                reads.problems = vec![format!("{error:#}")];
                Err(error)
            }
        }
    }

    /// Reads the source if the last read was long enough ago. Returns the problems of the source.
    fn refresh(&self) -> Vec<String> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if reads.next.is_none_or(|next| next <= Instant::now()) {
            // The error is one of the problems.
            let _ = self.read_into(&mut reads);
        }
        reads.problems.clone()
    }

    /// Returns a number that changes with the content of the pages. May block for seconds.
    pub fn version(&self) -> u64 {
        self.refresh();
        self.history.read().unwrap_or_else(PoisonError::into_inner).version()
    }

    /// Answers a request. May block for seconds.
    pub fn answer(&self, head: &Parts) -> Response<Bytes> {
        if head.method != Method::GET {
            let body = maud::html! { p { a href="/" { "Map of the federation" } } };
            let page = problem::page(
                "The console is read-only",
                format!("It does not serve {}.", head.method),
                body,
            );
            let mut response = self.page(StatusCode::METHOD_NOT_ALLOWED, |_| page);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        match head.uri.path() {
            "/style.css" => response(StatusCode::OK, "text/css; charset=utf-8", format!("{CSS}{STYLE}")),
            "/icon.svg" => response(StatusCode::OK, "image/svg+xml", ICON.to_owned()),
            "/script.js" => response(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT.to_owned()),
            path => self.answer_page(path, head.uri.query().unwrap_or_default()),
        }
    }

    fn answer_page(&self, path: &str, query: &str) -> Response<Bytes> {
        let mut status = StatusCode::OK;
        let find = |rows: &[&Row]| self.find(rows);
        let parameters = Parameters::parse(query);
        // A rehearsal takes long, and must not keep the index from being read.
        let wanted = parameters.as_ref().ok().filter(|_| path == what_if::PATH);
        let played = wanted.map_or(Ok(Played::Nothing), |parameters| self.play(parameters));
        let make = |view: &View<'_>| {
            let made = parameters.and_then(|parameters| match path {
                map::PATH => map::page(view, &parameters).map(Ok),
                timeline::PATH => timeline::page(view, &parameters).map(Ok),
                bindings::PATH => bindings::page(view, &parameters).map(Ok),
                binding::PATH => binding::page(view, &parameters, &find),
                decision::PATH => decision::page(view, &parameters, &find),
                plugins::PATH => plugins::page(view, &parameters).map(Ok),
                what_if::PATH => played.map(|played| Ok(what_if::page(view, &parameters, &played))),
                _ => Ok(Err(problem::unknown_path(path))),
            });
            match made {
                Ok(Ok(page)) => (StatusCode::OK, page),
                Ok(Err(page)) => (StatusCode::NOT_FOUND, page),
                Err(message) => (StatusCode::BAD_REQUEST, problem::wrong_parameter(message)),
            }
        };
        let mut response = self.page(StatusCode::OK, |view| {
            let (code, page) = make(view);
            status = code;
            page
        });
        *response.status_mut() = status;
        response
    }

    /// Rehearses the loss of a form.
    fn play(&self, parameters: &Parameters) -> Result<Played, String> {
        let Some(rehearsal) = &self.rehearsal else {
            return Ok(Played::Unavailable);
        };
        let Some(loss) = Loss::read(parameters)? else {
            return Ok(Played::Nothing);
        };
        Ok(match rehearsal.play(&loss) {
            Ok(rehearsed) => Played::Done(loss, rehearsed),
            Err(error) => Played::Failed(loss, format!("{error:#}")),
        })
    }

    /// Returns the records of rows, with the outcomes that are known.
    fn find(&self, rows: &[&Row]) -> anyhow::Result<Vec<Stored>> {
        let wanted: Vec<_> = rows.iter().map(|row| (row.id(), row.origin.place)).collect();
        let about = match rows {
            [] => return Ok(Vec::new()),
            [row] => row.id().to_string(),
            [first, others @ ..] if others.iter().all(|row| row.subject == first.subject) => first.subject.key(),
            [first, ..] => first.number.to_string(),
        };
        let mut found = self.source.find(&about, &wanted)?;
        for stored in &mut found {
            let id = stored.record.decision_id();
            if let Some(row) = rows.iter().find(|row| row.is(&id)) {
                stored.record.outcome = row.outcome;
            }
        }
        Ok(found)
    }

    fn page(&self, status: StatusCode, make: impl FnOnce(&View<'_>) -> Page) -> Response<Bytes> {
        let problems = self.refresh();
        let (queued, costs) = (self.source.queued(), self.source.costs());
        let (source, history) = (
            self.source.name(),
            self.history.read().unwrap_or_else(PoisonError::into_inner),
        );
        let view = View {
            history: &history,
            queued: queued.as_deref(),
            costs: costs.as_deref(),
            source: &source,
            problems: &problems,
            now: (self.now)(),
        };
        response(status, "text/html; charset=utf-8", make(&view).render(&view))
    }
}

/// Returns a response with the headers that confine a page.
fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests;
