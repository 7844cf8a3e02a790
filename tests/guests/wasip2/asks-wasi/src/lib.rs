//! Queries the standard library for everything that a plugin must not have access to, and puts the results into a
//! hold verdict.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read as _;
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::{Duration, Instant, SystemTime};

use bulkhead_sdk::{Binding, EvictionCheck, EvictionTask, EvictionVerdict, Plugin, PolicyError, Reason};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Does {
    Asks,
    Panics,
    Exits,
}

struct AsksWasi(Does);

impl Plugin for AsksWasi {
    const NAME: &'static str = "asks-wasi";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const CONFIG_SCHEMA: &'static str = r#"{"enum": ["asks", "panics", "exits"]}"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        bulkhead_sdk::config(config).map(Self)
    }
}

/// Returns the results as `name=value` pairs.
fn answers() -> String {
    let mut text = String::new();
    let mut note = |name: &str, value: String| write!(text, "{name}={value} ").expect("a string takes it");
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    note(
        "wall-ms",
        since_epoch.map_or_else(|_| "before".to_owned(), |age| age.as_millis().to_string()),
    );
    let started = Instant::now();
    std::thread::sleep(Duration::from_secs(3600));
    note("slept-ms", started.elapsed().as_millis().to_string());
    note("random", format!("{:016x}", RandomState::new().hash_one(0)));
    note("variables", std::env::vars().count().to_string());
    note("arguments", std::env::args().count().to_string());
    note("folder", std::fs::read_dir("/").is_ok().to_string());
    note("file", std::fs::read("/etc/passwd").is_ok().to_string());
    note("written", std::fs::write("/tmp/x", "x").is_ok().to_string());
    note("connected", TcpStream::connect("127.0.0.1:80").is_ok().to_string());
    note("bound", UdpSocket::bind("127.0.0.1:0").is_ok().to_string());
    note("resolved", "localhost:80".to_socket_addrs().is_ok().to_string());
    let mut input = String::new();
    note(
        "input",
        std::io::stdin()
            .read_to_string(&mut input)
            .map_or(u64::MAX, |read| read as u64)
            .to_string(),
    );
    text
}

impl EvictionCheck for AsksWasi {
    fn check(&self, _binding: &Binding, _task: &EvictionTask) -> Result<EvictionVerdict, PolicyError> {
        println!("a line\nand another");
        eprint!("no end");
        match self.0 {
            Does::Asks => Ok(EvictionVerdict::hold(Reason::new("AskedWasi", answers()))),
            Does::Panics => panic!("on purpose"),
            Does::Exits => std::process::exit(3),
        }
    }
}

bulkhead_sdk::export!(AsksWasi: EvictionCheck);
