use bulkhead_apiserver::{ApiServer, Clock, Options, kinds};
use http::{Request, Response};
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use serde_json::json;
use tower::BoxError;

use super::*;

fn chosen(modes: &[Mode], list: &[&str]) -> Result<Vec<&'static str>, UsageError> {
    Modes::new(modes)?.controllers(&list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
}

#[test]
fn controllers_are_chosen_in_karmadas_syntax() {
    let all = |list: &[&str]| chosen(&[Mode::All], list);
    assert_eq!(all(&["*"]).unwrap().len(), controller_names().count());
    assert_eq!(all(&["scheduler", "binding"]).unwrap(), ["scheduler", "binding"]);
    let most = all(&["*", "-taintManager"]).unwrap();
    assert!(most.len() + 1 == controller_names().count() && !most.contains(&"taintManager"));
    let error = all(&["sheduler"]).unwrap_err().to_string();
    assert!(
        error.contains("no controller sheduler") && error.contains("scheduler"),
        "{error}"
    );
}

#[test]
fn a_mode_runs_what_it_owns() {
    assert_eq!(
        chosen(&[Mode::Finish], &["*"]).unwrap(),
        ["gracefulEviction", "failoverRecord", "pluginStatus"]
    );
    assert_eq!(chosen(&[Mode::Interpret], &["*"]).unwrap(), ["pluginStatus"]);
    let evict = chosen(&[Mode::Evict, Mode::Interpret], &["*"]).unwrap();
    assert!(
        evict.contains(&"taintManager") && !evict.contains(&"scheduler"),
        "{evict:?}"
    );
    assert_eq!(evict, chosen(&[Mode::Report], &["*"]).unwrap());
    let error = chosen(&[Mode::Evict], &["scheduler"]).unwrap_err().to_string();
    assert!(error.contains("scheduler does not run in this --mode"), "{error}");
}

fn now() -> k8s_openapi::jiff::Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

/// Creates a control plane with a lease of 15 s. Returns its leases.
async fn leases(name: &str, holder: &str, renewed: &str) -> (ApiServer, Api<Lease>) {
    let kinds = kinds::kubernetes();
    let options = Options {
        kinds,
        auto_create_namespaces: true,
        ..Options::new("hub", 1, Clock::new(now()))
    };
    let hub = ApiServer::new(options);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "karmada-system"},
        "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15},
    });
    let leases: Api<Lease> = Api::namespaced(hub.client(), "karmada-system");
    leases
        .create(&Default::default(), &serde_json::from_value(lease).unwrap())
        .await
        .unwrap();
    (hub, leases)
}

const MANAGER: &str = "karmada-controller-manager";

#[tokio::test(start_paused = true)]
async fn a_controller_of_karmada_is_at_work_while_its_lease_is_renewed() {
    let check = async |name: &str, holder: &str, renewed: &str, expected: Option<(&'static str, String)>| {
        let (hub, leases) = leases(name, holder, renewed).await;
        let renews = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let next = json!({"spec": {"renewTime": "2026-01-01T00:01:02.000000Z"}});
            leases
                .patch(name, &PatchParams::default(), &Patch::Merge(next))
                .await
                .unwrap();
        };
        let client = hub.client();
        let (found, ()) = tokio::join!(active_karmada_controller(&client, Time::new(now())), renews);
        assert_eq!(found.unwrap(), expected, "{name} {holder:?} {renewed}");
    };
    let scheduler = "karmada-scheduler";
    check(
        MANAGER,
        "pod-a",
        "2026-01-01T00:00:50.000000Z",
        Some((MANAGER, "pod-a".to_owned())),
    )
    .await;
    check(
        scheduler,
        "pod-b",
        "2026-01-01T00:00:46.000000Z",
        Some((scheduler, "pod-b".to_owned())),
    )
    .await;
    check(
        MANAGER,
        "pod-a",
        "2026-01-01T00:01:45.000000Z",
        Some((MANAGER, "pod-a".to_owned())),
    )
    .await;
    check(MANAGER, "", "2026-01-01T00:00:59.000000Z", None).await;
    check("bulkhead", "pod-c", "2026-01-01T00:00:59.000000Z", None).await;
}

#[tokio::test(start_paused = true)]
async fn a_stopped_controller_of_karmada_does_not_prevent_a_start() {
    for renewed in [
        "2026-01-01T00:00:59.000000Z",
        "2026-01-01T00:00:45.000000Z",
        "2026-01-01T00:01:45.000000Z",
    ] {
        let (hub, leases) = leases(MANAGER, "pod-a", renewed).await;
        let found = active_karmada_controller(&hub.client(), Time::new(now()))
            .await
            .unwrap();
        assert_eq!(found, None, "{renewed}");
        // An observation of a minute does not reach the end of a long lease.
        let hour = json!({"spec": {"leaseDurationSeconds": 3600}});
        leases
            .patch(MANAGER, &PatchParams::default(), &Patch::Merge(hour))
            .await
            .unwrap();
        let found = active_karmada_controller(&hub.client(), Time::new(now()))
            .await
            .unwrap();
        assert_eq!(found, Some((MANAGER, "pod-a".to_owned())), "{renewed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_karmada_is_found_by_a_machine_whose_clock_is_ahead() {
    let check = async |renewed: &str, expected: Option<(&'static str, String)>| {
        let (hub, leases) = leases(MANAGER, "pod-a", renewed).await;
        let renews = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let next = json!({"spec": {"renewTime": "2025-12-31T23:59:59.000000Z"}});
            leases
                .patch(MANAGER, &PatchParams::default(), &Patch::Merge(next))
                .await
                .unwrap();
        };
        let client = hub.client();
        let (found, ()) = tokio::join!(active_karmada_controller(&client, Time::new(now())), renews);
        assert_eq!(found.unwrap(), expected, "{renewed}");
    };
    // Half an hour ahead, and a day.
    check("2025-12-31T23:31:00.000000Z", Some((MANAGER, "pod-a".to_owned()))).await;
    check("2025-12-31T00:01:00.000000Z", None).await;
}

/// Returns a client that may not read one of the Leases; the server answers about the others.
fn forbidding(server: Client, lease: &'static str) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        async move {
            if !request
                .uri()
                .path()
                .ends_with(&format!("/namespaces/karmada-system/leases/{lease}"))
            {
                return Ok::<_, BoxError>(server.send(request).await?);
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
                "message": format!("leases.coordination.k8s.io \"{lease}\" is forbidden"),
            });
            let answer = Response::builder()
                .status(403)
                .header("content-type", "application/json");
            Ok(answer.body(Body::from(serde_json::to_vec(&status)?))?)
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn leases_that_may_not_be_read_do_not_count_as_no_karmada() {
    let (hub, _) = leases("bulkhead", "pod-a", "2026-01-01T00:00:59.000000Z").await;
    for lease in KARMADA_LEASES {
        let client = forbidding(hub.client(), lease);
        let refused = check_leases(&client, "https://hub", &State::default())
            .await
            .unwrap_err()
            .to_string();
        for part in [
            "cannot run in mode all, the default, on https://hub",
            "get the leases karmada-controller-manager and karmada-scheduler in karmada-system",
            &format!("\"{lease}\" is forbidden"),
            "bulkhead account --mode all --apply",
        ] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
    check_leases(&hub.client(), "https://hub", &State::default())
        .await
        .unwrap();
}

#[test]
fn reporting_goes_with_nothing_that_writes() {
    let error = Modes::new(&[Mode::Report, Mode::Evict]).unwrap_err().to_string();
    assert!(error.contains("report,evict"), "{error}");
    assert!(Modes::new(&[Mode::Report]).unwrap().only_reports());
}
