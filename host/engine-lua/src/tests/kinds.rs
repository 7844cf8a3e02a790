use std::sync::Arc;

use bulkhead_core::call::{
    Call, ClusterTaintCall, EvictionCheckCall, EvictionVerdict, FilterCall, FilterVerdict, Reason, Reply, ScoreCall,
    TaintChange,
};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask, Health, Taint, TaintEffect};
use bulkhead_core::policy::FaultKind;
use bulkhead_core::snapshot::ClusterSnapshot;
use bulkhead_core::time::Time;

use super::load;

const NOW: i64 = 1_700_000_000;

fn now() -> Time {
    Time::from_millis(NOW * 1000 + 999)
}

fn clusters() -> ClusterSnapshot {
    let cluster = |name: &str| {
        Arc::new(Cluster {
            name: name.to_owned(),
            ..Cluster::default()
        })
    };
    ClusterSnapshot::new(["member1", "member2"].map(cluster))
}

fn ask(script: &str, point: EntryPoint, call: &Call<'_>) -> Result<Reply, (FaultKind, String)> {
    load(script, point)
        .call(call)
        .map_err(|fault| (fault.kind, fault.message))
}

fn bad_reply<T>(message: &str) -> Result<T, (FaultKind, String)> {
    Err((FaultKind::BadReply, format!("test.lua:1: {message}")))
}

#[test]
fn cluster_taints() {
    let cluster = Cluster {
        name: "member1".to_owned(),
        ..Cluster::default()
    };
    let check = |body: &str, expected: Result<&[TaintChange], &str>| {
        let script = format!("function ClusterTaint(cluster, now) {body} end");
        let actual = ask(
            &script,
            EntryPoint::ClusterTaint,
            &Call::ClusterTaint(ClusterTaintCall {
                cluster: &cluster,
                now: now(),
            }),
        );
        let actual = actual.map(|reply| match reply {
            Reply::ClusterTaint(verdict) => verdict.changes,
            other => panic!("{other:?}"),
        });
        match expected {
            Ok(changes) => assert_eq!(actual, Ok(changes.to_vec()), "{body}"),
            Err(text) => assert_eq!(actual, bad_reply(&format!("ClusterTaint returned {text}")), "{body}"),
        }
    };
    let taint = Taint {
        key: "k".into(),
        value: "v".into(),
        effect: TaintEffect::NoExecute,
        time_added: None,
    };
    let add = TaintChange::Add {
        taint,
        reason: Reason::new("R", "m"),
    };
    let effect = TaintEffect::NoSchedule;
    let remove = TaintChange::Remove {
        key: "k".into(),
        effect,
        reason: Reason::new("ScriptTaint", ""),
    };
    check("return {}", Ok(&[]));
    let both = "{{add = {key = 'k', value = 'v', effect = 'NoExecute'}, reason = 'R', message = 'm'}, \
                {remove = {key = 'k', effect = 'NoSchedule'}}}";
    check(&format!("return {both}"), Ok(&[add, remove]));
    check(
        &format!("if cluster.name == 'member1' and now == {NOW} and os.time() == now then return {{}} end"),
        Ok(&[]),
    );
    check("return nil", Err("nil, not a list"));
    check("return {a = 1}", Err("a table with keys, not a list"));
    check(
        "return {{add = {key = 'k', effect = 'No'}}}",
        Err("as element 1: a taint without a known effect"),
    );
    check(
        "return {{add = {effect = 'NoExecute'}}}",
        Err("as element 1: a taint without a key"),
    );
    check(
        "return {{}}",
        Err("as element 1: a table, not a table with either add or remove"),
    );
}

#[test]
fn filters() {
    let (binding, clusters) = (
        Binding {
            name: "b".to_owned(),
            ..Binding::default()
        },
        clusters(),
    );
    let check = |body: &str, expected: Result<&[FilterVerdict], &str>| {
        let script = format!("function Filter(binding, clusters, now) {body} end");
        let call = FilterCall {
            binding: &binding,
            clusters: clusters.present(),
            peers: &[],
            now: now(),
        };
        let actual = ask(&script, EntryPoint::Filter, &Call::Filter(call));
        match expected {
            Ok(verdicts) => assert_eq!(actual, Ok(Reply::Filter(verdicts.to_vec())), "{body}"),
            Err(text) => assert_eq!(actual, bad_reply(&format!("Filter returned {text}")), "{body}"),
        }
    };
    let unfit = |code: &str, message: &str| FilterVerdict::Unfit(Reason::new(code, message));
    check(
        "return {true, 'abstain'}",
        Ok(&[FilterVerdict::Fit, FilterVerdict::Abstain]),
    );
    let second = "{binding.name == 'b', {fit = clusters[2].name == 'x', reason = 'R', message = 'm'}}";
    check(&format!("return {second}"), Ok(&[FilterVerdict::Fit, unfit("R", "m")]));
    check(
        "return {false, {fit = true}}",
        Ok(&[unfit("ScriptRejected", ""), FilterVerdict::Fit]),
    );
    check("return {true}", Err("a list of 1 for 2 clusters"));
    check("return {}", Err("a list of 0 for 2 clusters"));
    check(
        "return {nil, true}",
        Err("a bad value: a list has a hole or an index that is not a position"),
    );
    check("return {true, {}}", Err("as element 2: a table without a boolean fit"));
    check(
        "return {true, 1}",
        Err("as element 2: a number, not true, false, \"abstain\" or a table with fit"),
    );
}

#[test]
fn scores() {
    let (binding, clusters) = (Binding::default(), clusters());
    let check = |body: &str, expected: Result<&[i64], &str>| {
        let script = format!("function Score(binding, clusters, now) {body} end");
        let call = ScoreCall {
            binding: &binding,
            clusters: clusters.present(),
            now: now(),
        };
        let actual = ask(&script, EntryPoint::Score, &Call::Score(call));
        match expected {
            Ok(scores) => assert_eq!(actual, Ok(Reply::Score(scores.to_vec())), "{body}"),
            Err(text) => assert_eq!(actual, bad_reply(&format!("Score returned {text}")), "{body}"),
        }
    };
    check("return {100, 99.9}", Ok(&[100, 99]));
    check(
        "local s = {} for i, c in ipairs(clusters) do s[i] = i end return s",
        Ok(&[1, 2]),
    );
    check("return {1, 2, 3}", Err("a list of 3 for 2 clusters"));
    check("return {1, '2'}", Err("as element 2: \"2\", not a number"));
    check("return 5", Err("a number, not a list"));
}

#[test]
fn eviction_checks() {
    let binding = Binding::default();
    let task = GracefulEvictionTask {
        from_cluster: "member1".to_owned(),
        ..GracefulEvictionTask::default()
    };
    let observed = [AggregatedStatusItem {
        cluster_name: "member2".to_owned(),
        health: Some(Health::Healthy),
        ..AggregatedStatusItem::default()
    }];
    let check = |body: &str, expected: Result<EvictionVerdict, &str>| {
        let script = format!("function EvictionCheck(binding, task, observed, now) {body} end");
        let call = EvictionCheckCall {
            binding: &binding,
            task: &task,
            observed: &observed,
            now: now(),
        };
        let actual = ask(&script, EntryPoint::EvictionCheck, &Call::EvictionCheck(call));
        match expected {
            Ok(verdict) => assert_eq!(actual, Ok(Reply::EvictionCheck(verdict)), "{body}"),
            Err(text) => assert_eq!(actual, bad_reply(&format!("EvictionCheck returned {text}")), "{body}"),
        }
    };
    let hold = |code: &str, message: &str, recheck_after_s| EvictionVerdict::Hold {
        reason: Reason::new(code, message),
        recheck_after_s,
    };
    check(
        "return 'release'",
        Ok(EvictionVerdict::Release(Reason::new("ScriptReleased", ""))),
    );
    check("return 'hold'", Ok(hold("ScriptHeld", "", None)));
    check("return 'abstain'", Ok(EvictionVerdict::Abstain));
    let body = "if task.fromCluster == 'member1' and observed[1].health == 'Healthy' then
        return {verdict = 'hold', reason = 'R', message = 'm', recheckAfterSeconds = 30.5} end";
    check(body, Ok(hold("R", "m", Some(30))));
    check("return true", Err("a boolean, not a verdict or a table with a verdict"));
    check(
        "return 'Release'",
        Err("the verdict \"Release\", not \"release\", \"hold\" or \"abstain\""),
    );
    check(
        "return {}",
        Err("the verdict nil, not \"release\", \"hold\" or \"abstain\""),
    );
    let negative = "a table whose recheckAfterSeconds is not a number of seconds";
    check("return {verdict = 'hold', recheckAfterSeconds = -1}", Err(negative));
}
