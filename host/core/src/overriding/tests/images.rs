//! Cases of `imageOverrider`.

use super::*;

/// Checks the image of a Deployment's container after one overrider.
fn image(given: &str, component: &str, operator: &str, value: &str, expected: Result<&str, &str>) {
    let mut object = workload("Deployment");
    object["spec"]["template"]["spec"]["containers"] = json!([{"name": "c", "image": given}]);
    let overrider = json!([{"component": component, "operator": operator, "value": value}]);
    let changed = overridden(&object, json!({"imageOverrider": overrider}));
    let got = changed.map(|mut object| object["spec"]["template"]["spec"]["containers"][0]["image"].take());
    let start = "cannot apply OverridePolicy shop/p: rule 0: imageOverrider[0]: container 0: ";
    let expected = expected
        .map(|image| json!(image))
        .map_err(|reason| format!("{start}{reason}"));
    assert_eq!(got, expected, "{given} {component} {operator} {value}");
}

const DIGEST: &str = "sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c";

#[test]
fn the_registry_is_added_replaced_or_removed() {
    let check = |given, operator, value, expected| image(given, "Registry", operator, value, Ok(expected));
    check("nginx", "add", "registry.example", "registry.example/nginx");
    check(
        "registry.example/nginx:1",
        "add",
        ":5000",
        "registry.example:5000/nginx:1",
    );
    check("nginx:1", "replace", "mirror.example", "mirror.example/nginx:1");
    check("old.example:5000/a/b:1", "replace", "new.example", "new.example/a/b:1");
    check("localhost/nginx", "replace", "new.example", "new.example/nginx");
    check(
        "[2001:db8::1]:5000/nginx",
        "replace",
        "new.example",
        "new.example/nginx",
    );
    // A first part without a dot, without a port, is a part of the repository.
    check("library/nginx", "replace", "new.example", "new.example/library/nginx");
    check("registry.example:5000/a/nginx:1", "remove", "", "a/nginx:1");
    check("nginx", "remove", "", "nginx");
}

#[test]
fn the_repository_is_added_replaced_or_removed() {
    let check = |given, operator, value, expected| image(given, "Repository", operator, value, Ok(expected));
    check("r.example/nginx:1", "add", "-slim", "r.example/nginx-slim:1");
    check(
        "r.example:5000/nginx:1",
        "replace",
        "mirror/nginx",
        "r.example:5000/mirror/nginx:1",
    );
    check("a/b/c", "replace", "d", "d");
    check("r.example/nginx:1", "remove", "", "r.example/:1");
}

#[test]
fn the_tag_or_the_digest_is_added_replaced_or_removed() {
    let check = |given: &str, operator, value: &str, expected: &str| {
        image(given, "Tag", operator, value, Ok(expected));
    };
    check("nginx", "add", "1.25", "nginx:1.25");
    check("nginx:1.25", "add", "-alpine", "nginx:1.25-alpine");
    check("nginx", "replace", "1.26", "nginx:1.26");
    check("r.example:5000/nginx", "replace", "1.26", "r.example:5000/nginx:1.26");
    check("nginx:1.25", "replace", DIGEST, &format!("nginx@{DIGEST}"));
    check(&format!("nginx@{DIGEST}"), "replace", "1.26", "nginx:1.26");
    check(&format!("nginx@{DIGEST}"), "remove", "", "nginx");
    check("nginx:1.25", "remove", "", "nginx");
    check("nginx", "remove", "", "nginx");
    // A text that is neither tag nor digest is ignored.
    check("nginx:1.25", "replace", "-1", "nginx:1.25");
    check("nginx:1.25", "replace", &format!("@{DIGEST}"), "nginx:1.25");
    check("nginx:1.25", "replace", "", "nginx:1.25");
}

#[test]
fn a_digest_beside_a_tag_is_dropped_as_in_karmada() {
    let both = format!("nginx:1.25@{DIGEST}");
    image(&both, "Registry", "replace", "r.example", Ok("r.example/nginx:1.25"));
    image(&both, "Tag", "remove", "", Ok("nginx"));
    let pinned = format!("nginx@{DIGEST}");
    image(
        &pinned,
        "Registry",
        "replace",
        "r.example",
        Ok(&format!("r.example/{pinned}")),
    );
}

#[test]
fn an_image_that_is_no_reference_is_an_error() {
    let check = |given: &str, reason: &str| {
        image(
            given,
            "Tag",
            "replace",
            "1",
            Err(&format!("cannot parse the image {given:?}: {reason}")),
        );
    };
    check("", "it is empty");
    check("Nginx", "the repository must be lower case");
    check("nginx:", "it is no image reference");
    check("nginx latest", "it is no image reference");
    check("nginx\n", "it is no image reference");
    check(&"a".repeat(256), "the repository is longer than 255 bytes");
    check(&format!("nginx@{}", &DIGEST[..50]), "its digest has the wrong length");
    check(
        &format!("nginx@{}", DIGEST.replace('f', "F")),
        "its digest must be lower case",
    );
    let foreign = DIGEST.replace("sha256", "md5");
    check(
        &format!("nginx@{foreign}"),
        "the algorithm of its digest is not sha256, sha384 or sha512",
    );
}

#[test]
fn without_a_predicate_all_containers_of_known_kinds_are_changed() {
    let overriders = || json!({"imageOverrider": [{"component": "Tag", "operator": "replace", "value": "2"}]});
    for kind in ["Pod", "ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "Job"] {
        let pod = if kind == "Pod" { "/spec" } else { "/spec/template/spec" };
        for (place, image) in [
            ("containers/0", "nginx:2"),
            ("containers/1", "registry.example:5000/tools/log:2"),
            ("initContainers/0", "busybox:1"),
        ] {
            check(
                &workload(kind),
                overriders(),
                &format!("{pod}/{place}/image"),
                Some(json!(image)),
            );
        }
    }
    let other = workload("CronJob");
    assert_eq!(overridden(&other, overriders()), Ok(other));
    let mut empty = workload("Deployment");
    empty["spec"] = json!({});
    assert_eq!(overridden(&empty, overriders()), Ok(empty));
}

#[test]
fn a_predicate_names_one_image_of_any_kind() {
    let object = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"},
        "spec": {"images": [{"a/b": "nginx:1"}], "count": 3}});
    let overriders = |path: &str| {
        let predicate = json!({"path": path});
        json!({"imageOverrider": [
            {"predicate": predicate, "component": "Tag", "operator": "replace", "value": "2"}]})
    };
    let path = "/spec/images/0/a~1b";
    check(&object, overriders(path), path, Some(json!("nginx:2")));
    let fails = |path: &str, reason: &str| {
        fails(
            &object,
            overriders(path),
            &format!("imageOverrider[0]: predicate path {path:?}{reason}"),
        );
    };
    fails("/spec/image", " does not exist");
    fails("/spec/images/1/image", " does not exist");
    fails("spec/images", " does not exist");
    fails("/spec/count", ": the image is a number, not a string");
    fails("", ": the image is an object, not a string");
}

#[test]
fn containers_of_another_shape_are_an_error() {
    let overriders = || json!({"imageOverrider": [{"component": "Tag", "operator": "remove"}]});
    let mut object = workload("Pod");
    object["spec"]["containers"] = json!([{"name": "web"}]);
    fails(&object, overriders(), "imageOverrider[0]: container 0 has no image");
    object["spec"]["containers"] = json!({"web": {}});
    fails(
        &object,
        overriders(),
        "imageOverrider[0]: spec.containers is an object, not a list",
    );
    object["spec"] = json!("x");
    fails(
        &object,
        overriders(),
        "imageOverrider[0]: spec is a string, not an object",
    );
}
