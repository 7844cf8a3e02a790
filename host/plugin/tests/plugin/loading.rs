//! Loading has a time limit, and a listed plugin that is not loaded does not vanish.

mod quarantine;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use bulkhead_core::call::{Call, CallKind, EvictionCheckCall, EvictionVerdict, HealthCall, Reason, Reply};
use bulkhead_core::combine;
use bulkhead_core::model::{Binding, GracefulEvictionTask, Health};
use bulkhead_core::policy::{Capability, EngineKind, Fault, FaultKind, Policy, PolicyId};
use bulkhead_core::time::Time;
use bulkhead_plugin::{
    CrashMarker, Data, Engine, LIST, Layer, LoadError, LoadLimits, LoadStage, Loaded, Loading, PluginSource, Plugins,
    Refresh, Registry, SmokeTest,
};
use serde_json::json;

use crate::described;

/// Answers every eviction check the same way.
struct Checks(PolicyId, [Capability; 1], Result<EvictionVerdict, Fault>);

impl Policy for Checks {
    fn id(&self) -> &PolicyId {
        &self.0
    }
    fn capabilities(&self) -> &[Capability] {
        &self.1
    }
    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        self.2.clone().map(Reply::EvictionCheck)
    }
}

fn releases(id: PolicyId) -> Checks {
    Checks(
        id,
        [Capability::any(CallKind::EvictionCheck)],
        Ok(EvictionVerdict::Release(Reason::new("Said", ""))),
    )
}

/// Loads scripts that begin with `release`. `gate` blocks loading until it is opened; any other text is broken.
#[derive(Default)]
struct Scripts {
    gate: (Mutex<bool>, Condvar),
    begun: Mutex<Option<mpsc::Sender<String>>>,
    loads: AtomicUsize,
}

impl Scripts {
    fn open(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }

    fn report_to(&self) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel();
        *self.begun.lock().unwrap() = Some(sender);
        receiver
    }
}

impl Engine for Scripts {
    fn kind(&self) -> EngineKind {
        EngineKind::Lua
    }

    fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        if let Some(begun) = &*self.begun.lock().unwrap() {
            begun.send(source.name.clone()).unwrap();
        }
        let code = String::from_utf8(source.modules[0].code.to_vec()).unwrap();
        if code.starts_with("gate") {
            let mut is_open = self.gate.0.lock().unwrap();
            while !*is_open {
                is_open = self.gate.1.wait(is_open).unwrap();
            }
        } else if !code.starts_with("release") {
            return Err(LoadError::new(source, LoadStage::Compiled, "no end"));
        }
        let id = PolicyId {
            name: source.name.clone(),
            version: "1".to_owned(),
            engine: EngineKind::Lua,
        };
        let description = described(source.digest());
        Ok(Loaded {
            policy: Arc::new(releases(id)),
            description,
        })
    }
}

/// Returns a catalog of scripts, each a line of the list and its code.
fn files(plugins: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    let lines = plugins
        .iter()
        .fold(String::new(), |lines, (line, _)| lines + "- " + line + "\n");
    let list = format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginList\nplugins:\n{lines}");
    let codes = plugins.iter().map(|(line, code)| {
        let file = line.split("lua: ").nth(1).unwrap().split([',', '}']).next().unwrap();
        (file.to_owned(), code.as_bytes().to_vec())
    });
    codes.chain([(LIST.to_owned(), list.into_bytes())]).collect()
}

struct Host {
    engine: Arc<Scripts>,
    data: Arc<Data>,
    plugins: Plugins,
}

/// Implements `Engine` for an `Arc` of an engine.
struct Shared(Arc<Scripts>);

impl Engine for Shared {
    fn kind(&self) -> EngineKind {
        self.0.kind()
    }

    fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        self.0.load(source)
    }
}

fn host(plugins: &[(&str, &str)], limits: LoadLimits, crash_marker: Option<&CrashMarker>) -> Host {
    let (engine, data) = (Arc::<Scripts>::default(), Arc::new(Data::new("test", files(plugins))));
    let registry = Arc::new(Registry::new(vec![Arc::new(Shared(Arc::clone(&engine)))]));
    registry.replace(Layer::Builtins, vec![Arc::new(releases(PolicyId::builtin("Native")))]);
    let crash_marks = crash_marker.map(CrashMarker::marks);
    let options = Loading {
        limits,
        crash_marks,
        ..Loading::default()
    };
    let plugins = Plugins::new(registry, Box::new(Arc::clone(&data)), options);
    Host { engine, data, plugins }
}

impl Host {
    /// Returns true if the old copy may be removed, and the reason.
    fn eviction(&self) -> (bool, String) {
        let (binding, task, now) = (
            Binding::default(),
            GracefulEvictionTask::default(),
            Time::from_millis(0),
        );
        let call = EvictionCheckCall {
            binding: &binding,
            task: &task,
            observed: &[],
            now,
        };
        let outcome = combine::eviction_check(&self.plugins.registry().policies(), call);
        (outcome.released, outcome.attribution.reason.to_string())
    }

    fn health(&self) -> Health {
        let object = Arc::new(json!({"apiVersion": "v1", "kind": "Pod"}));
        let call = HealthCall {
            object: &object,
            now: Time::from_millis(0),
        };
        combine::health(&self.plugins.registry().policies(), call).health
    }

    fn summary(&self) -> Vec<String> {
        self.plugins.status().iter().map(ToString::to_string).collect()
    }
}

const HOUR: Duration = Duration::from_hours(1);

fn patient() -> LoadLimits {
    LoadLimits {
        load_time: HOUR,
        start_wait: HOUR,
        ..LoadLimits::default()
    }
}

#[test]
fn a_listed_plugin_that_does_not_load_after_a_restart_holds_evictions() {
    let host = host(
        &[("{name: freeze, lua: freeze.lua}", "function EvictionCheck(retrun")],
        patient(),
        None,
    );
    assert_eq!(host.plugins.refresh(), Refresh::Changed);
    let (released, why) = host.eviction();
    assert!(
        !released && why.starts_with("PluginNotLoaded: freeze is not loaded: test freeze.lua failed to comp"),
        "{why}"
    );
    let text = "plugin freeze is not active; until it is, every eviction-check call is a fault; the newest version was \
                refused: test freeze.lua failed to compile: no end";
    assert_eq!(host.summary(), [text]);
    host.data.set(files(&[("{name: freeze, lua: freeze.lua}", "release")]));
    host.plugins.refresh();
    assert!(host.eviction().0, "it loads now");
    host.data
        .set(files(&[("{name: freeze, lua: freeze.lua}", "broken again")]));
    host.plugins.refresh();
    assert!(host.eviction().0, "the version before stays in force");
}

#[test]
fn a_plugin_whose_file_is_gone_holds_too() {
    let host = host(&[("{name: freeze, lua: freeze.lua}", "")], patient(), None);
    let mut without = files(&[("{name: freeze, lua: freeze.lua}", "")]);
    without.remove("freeze.lua");
    host.data.set(without);
    host.plugins.refresh();
    assert!(!host.eviction().0);
    assert_eq!(
        host.plugins.status()[0].held,
        [CallKind::ClusterTaint, CallKind::EvictionCheck]
    );
    assert_eq!(host.health(), Health::Healthy, "it may be no health plugin at all");
}

#[test]
fn what_the_manifest_says_goes_before_the_hold() {
    let check = |settings: &str, code: &str, released: bool, part: &str| {
        let line = format!("{{name: p, lua: p.lua{settings}}}");
        let host = host(&[(&line, code)], patient(), None);
        host.plugins.refresh();
        let (is_released, why) = host.eviction();
        assert!(
            is_released == released && why.contains(part),
            "{settings}: {is_released} {why}"
        );
    };
    check("", "broken", false, "PluginNotLoaded");
    check(", fallback: abstain", "broken", true, "Said");
    check(
        ", fallback: {builtin: Native}",
        "broken",
        true,
        "because p is not loaded",
    );
    check(", fallback: previous", "broken", false, "PluginNotLoaded");
    check(", mode: shadow", "broken", true, "Said");
    check(", mode: off", "broken", true, "Said");
    check(", answers: [health]", "broken", true, "Said");
    check("", "function InterpretHealth( broken", true, "Said");
}

#[test]
fn health_is_unknown_while_a_health_plugin_is_not_loaded() {
    let pods = "{name: p, answers: [health], kinds: [{apiVersion: v1, kind: Pod}], lua: p.lua}";
    let host = host(&[(pods, "broken")], patient(), None);
    host.plugins.refresh();
    assert_eq!(host.health(), Health::Unknown);
}

/// Returns the next message. A test that would wait forever fails.
fn next<T>(receiver: &mpsc::Receiver<T>) -> T {
    receiver.recv_timeout(Duration::from_mins(1)).unwrap()
}

#[test]
fn a_plugin_that_takes_long_to_load_delays_no_other() {
    let host = host(
        &[
            ("{name: slow, lua: slow.lua}", "gate"),
            ("{name: quick, lua: quick.lua}", "release"),
        ],
        patient(),
        None,
    );
    let (sender, installed) = mpsc::channel();
    let _observer = host.plugins.registry().subscribe(move || sender.send(()).unwrap());
    assert_eq!(host.plugins.look(), Refresh::Changed);
    // The empty set, followed by the loaded plugin.
    next(&installed);
    next(&installed);
    let actual = host.summary();
    assert!(
        actual[0] == "plugin slow is being loaded" && actual[1].starts_with("plugin quick 1 is active"),
        "{actual:?}"
    );
    host.data.set(files(&[
        ("{name: slow, lua: slow.lua}", "gate"),
        ("{name: quick, lua: quick.lua}", "release again"),
    ]));
    assert_eq!(host.plugins.look(), Refresh::Changed);
    next(&installed);
    next(&installed);
    assert_eq!(
        host.engine.loads.load(Ordering::Relaxed),
        3,
        "what is being loaded does not begin again"
    );
    host.engine.open();
    next(&installed);
    assert!(host.summary()[0].starts_with("plugin slow 1 is active"));
}

#[test]
fn loads_over_time_hold_and_only_so_many_of_them_go_on() {
    let limits = LoadLimits {
        load_time: Duration::ZERO,
        loads: 1,
        overdue: 1,
        ..patient()
    };
    let names = ["a", "b", "c"];
    let lines = names.map(|name| format!("{{name: {name}, lua: {name}.lua}}"));
    let plugins: Vec<_> = lines.iter().map(|line| (line.as_str(), "gate EvictionCheck")).collect();
    let host = host(&plugins, limits, None);
    let begun = host.engine.report_to();
    host.plugins.refresh();
    let mut first = [next(&begun), next(&begun)];
    first.sort();
    assert_eq!(first, ["a", "b"]);
    assert!(!host.eviction().0);
    let actual = host.summary();
    let late = "refused: test a.lua failed to compile: loading it took longer than 0 s";
    assert!(actual[0].ends_with(late), "{actual:?}");
    assert_eq!(
        actual[2],
        "plugin c is being loaded; until it is, every eviction-check call is a fault"
    );
    assert!(begun.try_recv().is_err(), "a third load began");
    host.engine.open();
    assert_eq!(next(&begun), "c");
}

/// Wraps policies so that the first calls of each run out of time.
struct Slow {
    inner: Arc<Scripts>,
    faults: Arc<AtomicUsize>,
}

struct RanOut(Arc<dyn Policy>, Arc<AtomicUsize>);

impl Policy for RanOut {
    fn id(&self) -> &PolicyId {
        self.0.id()
    }
    fn capabilities(&self) -> &[Capability] {
        self.0.capabilities()
    }
    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let ran_out = self
            .1
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if ran_out.is_ok() {
            Err(Fault::new(FaultKind::Deadline, "took longer than 5000 ms"))
        } else {
            self.0.call(call)
        }
    }
}

impl Engine for Slow {
    fn kind(&self) -> EngineKind {
        EngineKind::Lua
    }
    fn load(&self, source: &PluginSource) -> Result<Loaded, LoadError> {
        let Loaded { policy, description } = self.inner.load(source)?;
        Ok(Loaded {
            policy: Arc::new(RanOut(policy, Arc::clone(&self.faults))),
            description,
        })
    }
}

#[test]
fn a_smoke_test_on_a_busy_machine_is_repeated_and_a_broken_plugin_is_not() {
    let (inner, faults) = (Arc::<Scripts>::default(), Arc::new(AtomicUsize::new(2)));
    let engine = Slow {
        inner: Arc::clone(&inner),
        faults,
    };
    let registry = Arc::new(Registry::new(vec![Arc::new(engine)]));
    let list = files(&[
        ("{name: busy, lua: busy.lua}", "release"),
        ("{name: broken, lua: broken.lua}", "broken"),
    ]);
    let data = Arc::new(Data::new("test", list));
    let smoke: SmokeTest = Box::new(|policy| {
        let (binding, task, now) = (
            Binding::default(),
            GracefulEvictionTask::default(),
            Time::from_millis(0),
        );
        let call = Call::EvictionCheck(EvictionCheckCall {
            binding: &binding,
            task: &task,
            observed: &[],
            now,
        });
        policy.call(&call).map(drop).map_err(|fault| fault.to_string())
    });
    let limits = LoadLimits {
        retry_base: Duration::ZERO,
        ..patient()
    };
    let options = Loading {
        smoke_test: Some(smoke),
        limits,
        ..Loading::default()
    };
    let plugins = Plugins::new(registry, Box::new(data), options);
    let stages = || plugins.status().iter().map(|status| status.stage).collect::<Vec<_>>();
    for expected in [
        LoadStage::SmokeTested,
        LoadStage::SmokeTested,
        LoadStage::Active,
        LoadStage::Active,
    ] {
        plugins.refresh();
        assert_eq!(stages(), [expected, LoadStage::Compiled]);
    }
    assert_eq!(inner.loads.load(Ordering::Relaxed), 3 + 1);
}
