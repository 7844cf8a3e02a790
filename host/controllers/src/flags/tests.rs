use super::*;

#[test]
fn values_out_of_range_are_named() {
    let check = |change: fn(&mut Flags), flag: Option<&str>| {
        let mut flags = Flags::default();
        change(&mut flags);
        let message = flags.validate().err();
        assert_eq!(
            message.as_deref().and_then(|message| message.split(':').next()),
            flag,
            "{message:?}"
        );
    };
    check(|_| {}, None);
    check(|flags| flags.resource_eviction_rate = 0.0, None);
    check(
        |flags| flags.resource_eviction_rate = -1.0,
        Some("resource-eviction-rate"),
    );
    check(
        |flags| flags.resource_eviction_rate = f64::NAN,
        Some("resource-eviction-rate"),
    );
    check(
        |flags| flags.resource_eviction_rate_per_cluster = Some(-0.1),
        Some("resource-eviction-rate-per-cluster"),
    );
    check(
        |flags| flags.secondary_resource_eviction_rate = -0.1,
        Some("secondary-resource-eviction-rate"),
    );
    check(
        |flags| flags.unhealthy_cluster_threshold = 1.1,
        Some("unhealthy-cluster-threshold"),
    );
    check(
        |flags| flags.unhealthy_cluster_threshold = f64::NAN,
        Some("unhealthy-cluster-threshold"),
    );
    check(
        |flags| flags.cluster_lease_duration = GoDuration::default(),
        Some("cluster-lease-duration"),
    );
    for fraction in [0.0, 1.0, -0.25, f64::NAN, f64::INFINITY] {
        let flags = Flags {
            cluster_lease_renew_interval_fraction: fraction,
            ..Flags::default()
        };
        let message = flags.validate().unwrap_err();
        assert!(
            message.starts_with("cluster-lease-renew-interval-fraction: must be"),
            "{fraction}: {message}"
        );
    }
    check(|flags| flags.cluster_lease_renew_interval_fraction = 0.5, None);
    let window = "failback-stabilization-window";
    check(
        |flags| flags.failback_stabilization_window = GoDuration::default(),
        Some(window),
    );
    check(|flags| flags.failback_concurrency = 0, Some("failback-concurrency"));
}

#[test]
fn durations_are_spelled_as_in_go() {
    let check = |text: &str, millis: Option<u64>| {
        let parsed = text
            .parse::<GoDuration>()
            .ok()
            .map(|duration| duration.0.as_millis() as u64);
        assert_eq!(parsed, millis, "{text:?}");
    };
    check("10s", Some(10_000));
    check("1m30s", Some(90_000));
    check("500ms", Some(500));
    check("1.5h", Some(5_400_000));
    check("0", Some(0));
    check("0s", Some(0));
    check("", None);
    check("10", None);
    check("s", None);
    check("10 s", None);
    check("-5s", None);
    assert_eq!(GoDuration(Duration::from_millis(90_500)).to_string(), "1m30s500ms");
}
