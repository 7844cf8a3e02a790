use super::*;

/// Name and value of a variable.
type Variable = (&'static str, &'static str);

/// Returns the settings of these variables, and the warnings.
fn read(variables: &[(&str, &str)]) -> (Option<Settings>, Vec<String>) {
    let value = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let mut warnings = Vec::new();
    (Settings::read(&value, &mut warnings), warnings)
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");

#[test]
fn traces_are_off_unless_the_environment_asks_for_them() {
    let of_traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces.example/in");
    let cases: [(&[Variable], Option<&str>); 9] = [
        (&[], None),
        (&[("OTEL_SERVICE_NAME", "hub"), ("OTEL_BSP_SCHEDULE_DELAY", "1")], None),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], None),
        (&[ENDPOINT], Some("http://collector:4318/v1/traces")),
        (&[ENDPOINT, of_traces], Some("https://traces.example/in")),
        (&[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")], None),
        (&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")], None),
        (
            &[("OTEL_TRACES_EXPORTER", "otlp")],
            Some("http://localhost:4318/v1/traces"),
        ),
        (
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "otlp")],
            Some("http://collector:4318/v1/traces"),
        ),
    ];
    for (variables, expected) in cases {
        let (settings, warnings) = read(variables);
        assert_eq!(
            settings.as_ref().map(|settings| settings.endpoint.as_str()),
            expected,
            "{variables:?}"
        );
        assert_eq!(warnings, [""; 0], "{variables:?}");
    }
}

#[test]
fn an_invalid_value_is_a_warning_with_its_variable() {
    let cases = [
        ("OTEL_SDK_DISABLED", "yes", "neither true nor false", true),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "collector:4318",
            "is not a URL",
            false,
        ),
        (
            "OTEL_TRACES_EXPORTER",
            "zipkin",
            "there is no exporter \"zipkin\"",
            false,
        ),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "use http/protobuf", false),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "use none", false),
        (
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "udp",
            "there is no protocol \"udp\"",
            true,
        ),
        (
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            "10s",
            "is not a whole number; 10000 is used",
            true,
        ),
        (
            "OTEL_TRACES_SAMPLER",
            "jaeger_remote",
            "parentbased_always_on is used",
            true,
        ),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "0 is not possible; 2048 is used", true),
    ];
    for (name, value, expected, is_on) in cases {
        let (settings, warnings) = read(&[ENDPOINT, (name, value)]);
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        assert!(warnings[0].starts_with(&format!("{name}: ")), "{warnings:?}");
        assert!(warnings[0].contains(expected), "{warnings:?}");
        assert_eq!(settings.is_some(), is_on, "{name}");
    }
}

#[test]
fn a_warning_about_headers_has_no_credentials() {
    let (settings, warnings) = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", "authorization: secret,a=b")]);
    assert!(settings.is_some());
    assert_eq!(
        warnings,
        ["OTEL_EXPORTER_OTLP_HEADERS: 1 of its parts are not a header such as name=value; they are ignored"]
    );
}

#[test]
fn sampler_limits_and_times_are_those_of_the_environment() {
    let (settings, warnings) = read(&[
        ENDPOINT,
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "3000"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2000"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
        ("OTEL_BSP_SCHEDULE_DELAY", "250"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment=test, service.name=hub",
        ),
    ]);
    let settings = settings.unwrap();
    assert_eq!(warnings, [""; 0]);
    assert!(
        matches!(settings.sampler, Sampler::TraceIdRatioBased(0.25)),
        "{settings:?}"
    );
    assert_eq!(
        (settings.timeout, settings.delay),
        (Duration::from_secs(2), Duration::from_millis(250))
    );
    assert_eq!((settings.queue_max, settings.batch_max), (100, 100));
    assert_eq!(settings.ca_file, Some(PathBuf::from("/ca.pem")));
    assert!(settings.is_named);
}

#[test]
fn the_shown_endpoint_has_no_credentials() {
    let (settings, _) = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:secret@collector:4318")]);
    assert_eq!(settings.unwrap().shown_endpoint(), "http://collector:4318/v1/traces");
}
