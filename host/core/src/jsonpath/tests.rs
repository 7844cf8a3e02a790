use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "replicas": 2,
        "ratio": 0.5,
        "big": 1_734_462_491_693_i64,
        "ok": true,
        "none": null,
        "labels": {"app.kubernetes.io/name": "x"},
        "jobStatus": {"jobID": "f00", "state": "RUNNING"},
        "conditions": [
            {"type": "Ready", "status": "True", "weight": 1},
            {"type": "Degraded", "status": "False", "weight": 7},
        ],
        "names": ["a", "b", "c", "d"],
    })
}

#[test]
fn templates_read_as_kubectls_do() {
    let check = |template: &str, expected: &str| {
        let actual = template
            .parse::<Template>()
            .and_then(|template| template.evaluate(&object()));
        assert_eq!(actual.as_deref(), Ok(expected), "{template}");
    };
    check("plain", "plain");
    check("{.replicas}", "2");
    check("{ .replicas }", "2");
    check("{$.replicas}", "2");
    check("{@.replicas}", "2");
    check("{['replicas']}", "2");
    check("{.ratio} {.ok} {.none}", "0.5 true null");
    check("{.big}", "1734462491693");
    check(r"{.labels.app\.kubernetes\.io/name}", "x");
    check("{.labels['app.kubernetes.io/name']}", "x");
    check("{.jobStatus}", r#"{"jobID":"f00","state":"RUNNING"}"#);
    check("id-{.jobStatus.jobID}", "id-f00");
    check("{.names[0]}{.names[-1]}", "ad");
    check("{.names[*]}", "a b c d");
    check("{.names[1:3]}", "b c");
    check("{.names[:3:2]}", "a c");
    check("{.names[-2:]}", "c d");
    check("{.names[0,2]}", "a c");
    check("{.jobStatus['jobID','state']}", "f00 RUNNING");
    check("{.jobStatus.*}", "f00 RUNNING");
    check("{..jobID}", "f00");
    check("{..status}", "True False");
    check(r#"{.conditions[?(@.type=="Ready")].status}"#, "True");
    check("{.conditions[?(@.type != 'Ready')].status}", "False");
    check("{.conditions[?(@.weight>3)].type}", "Degraded");
    check("{.conditions[?(@.missing)].type}", "");
    check(
        r#"{range .conditions[*]}{.type}={.status}{"\n"}{end}"#,
        "Ready=True\nDegraded=False\n",
    );
}

#[test]
fn a_path_selects_its_first_value_and_skips_missing_ones() {
    let check = |path: &str, expected: Option<Value>| {
        let path: Path = path.parse().unwrap();
        assert_eq!(path.first(&object()).cloned(), expected, "{path:?}");
    };
    check(".replicas", Some(json!(2)));
    check("$.replicas", Some(json!(2)));
    check(".conditions[?(@.type==\"Ready\")].status", Some(json!("True")));
    check(".conditions[?(@.type==\"Other\")].status", None);
    check(".conditions[1].weight", Some(json!(7)));
    check(".none", Some(Value::Null));
    check(".missing.deeper", None);
    check(".conditions[9].type", None);
    for path in ["replicas", ".replicas}", ".names["] {
        assert!(path.parse::<Path>().is_err(), "{path}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    let check = |template: &str, expected: &str| {
        let actual = template
            .parse::<Template>()
            .and_then(|template| template.evaluate(&object()));
        assert_eq!(
            actual.map_err(|error| error.to_string()),
            Err(expected.to_owned()),
            "{template}"
        );
    };
    check("{.missing}", "missing is not found");
    check("{.jobStatus.missing.deeper}", "missing is not found");
    check("{.names[9]}", "[9] is not found");
    check("{.replicas.x}", "x is not found");
}

#[test]
fn what_does_not_read_is_named_with_its_place() {
    let check = |template: &str, expected: &str| {
        let actual = template.parse::<Template>().map_err(|error| error.to_string());
        assert_eq!(actual, Err(expected.to_owned()), "{template}");
    };
    check("{.replicas", "at byte 10: expected \"}\"");
    check(
        "{.names[}",
        "at byte 8: expected an index, a slice, '*' or a quoted name",
    );
    check("{.names[1}", "at byte 9: expected \"]\"");
    check("{.names['a}", "at byte 8: unterminated string");
    check("{range .names[*]}{@}", "at byte 20: a range without {end}");
    check("{end}", "at byte 5: {end} without a range");
    check(
        "{.a[?(x==1)]}",
        "at byte 6: expected @, $, a quoted text, a number, true or false",
    );
    check(&"x".repeat(5000), "at byte 4096: the template is too long");
    let deep = format!("{}{}", "{range .names[*]}".repeat(9), "{end}".repeat(9));
    check(&deep, "at byte 153: nested more than 8 deep");
}
