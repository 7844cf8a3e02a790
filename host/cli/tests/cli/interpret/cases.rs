//! `bulkhead interpret --test`: cases beside a customization.

use std::fs;

use super::{GAME, check, folder, root};

#[test]
fn cases_beside_a_customization_are_run() {
    check(&root(), &["--test", "plugins/lua/kinds"], 0, &["0 failed"]);
    let folder = folder("cases", &[]);
    let game = root().join(GAME);
    fs::copy(game.join("customization.yaml"), folder.join("customizations.yaml")).unwrap();
    fs::create_dir(folder.join("testdata")).unwrap();
    let cases = fs::read_to_string(game.join("cases_test.yaml")).unwrap();
    fs::write(folder.join("testdata/health.yaml"), &cases).unwrap();
    check(&folder, &["--test", "."], 0, &["Game: a server is missing"]);
    fs::write(
        folder.join("testdata/health.yaml"),
        cases.replace("ServersDown", "ServersUp"),
    )
    .unwrap();
    let arguments = ["--test", ".", "--junit", "junit.xml"];
    check(&folder, &arguments, 1, &["FAILED", "health.yaml:2:", "ServersUp"]);
    assert!(
        fs::read_to_string(folder.join("junit.xml"))
            .unwrap()
            .contains("<failure")
    );
    check(&folder, &["--test", "testdata"], 2, &["there are no cases in testdata"]);
}

#[test]
fn a_case_file_that_cannot_be_read_is_one_failed_case() {
    let folder = folder("unreadable", &[("testdata/a.yaml", "operation: [\n")]);
    let game = root().join(GAME);
    fs::copy(game.join("customization.yaml"), folder.join("customization.yaml")).unwrap();
    fs::copy(game.join("cases_test.yaml"), folder.join("cases_test.yaml")).unwrap();
    check(
        &folder,
        &["--test", "."],
        1,
        &["testdata/a.yaml can be used", "Game: a server is missing", " 1 failed"],
    );
}

#[test]
fn a_repeated_key_of_a_case_file_is_a_warning_and_its_last_value_counts() {
    let folder = folder("repeated", &[]);
    let game = root().join(GAME);
    fs::copy(game.join("customization.yaml"), folder.join("customization.yaml")).unwrap();
    let cases = fs::read_to_string(game.join("cases_test.yaml")).unwrap();
    fs::write(
        folder.join("cases_test.yaml"),
        cases.replacen("name: ", "name: replaced\nname: ", 1),
    )
    .unwrap();
    check(
        &folder,
        &["--test", "."],
        0,
        &["warning: ./cases_test.yaml: ", "2 passed, 0 failed"],
    );
}

#[test]
fn a_file_of_thousands_of_cases_is_read() {
    let case = |number| {
        format!(
            "name: case {number}\noperation: InterpretReplica\ndesiredObj: {{apiVersion: example.io/v1, kind: Game, \
             spec: {{servers: 3, template: {{spec: {{}}}}}}}}\noutput: {{replica: 3}}\n"
        )
    };
    let cases: Vec<_> = (0..1_500).map(case).collect();
    let folder = folder("many", &[("a_test.yaml", &cases.join("---\n"))]);
    fs::copy(
        root().join(GAME).join("customization.yaml"),
        folder.join("customization.yaml"),
    )
    .unwrap();
    check(&folder, &["--test", "."], 0, &["1500 passed, 0 failed"]);
}

/// Karmada's test data has status items without a cluster, and dependencies in any order.
#[test]
fn cases_are_read_and_compared_as_in_karmada() {
    let customization = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: \
        {name: a}\nspec:\n  target: {apiVersion: v1, kind: A}\n  customizations:\n    statusAggregation:\n      \
        luaScript: |\n        function AggregateStatus(o, items)\n          \
        if items == nil then return o end\n          \
        o.status = {first = (items[1] or {}).clusterName, n = #items}\n          return o\n        end\n    \
        dependencyInterpretation:\n      luaScript: |\n        function GetDependencies(o)\n          \
        local s = {apiVersion = 'v1', kind = 'Secret', name = 's'}\n          return {s, s}\n        end\n";
    let cases = "name: no cluster\noperation: AggregateStatus\ndesiredObj: {apiVersion: v1, kind: A}\nstatusItems: \
        [{status: {}}]\noutput: {aggregatedStatus: {apiVersion: v1, kind: A, status: {first: '', n: 1}}}\n---\nname: \
        once\noperation: InterpretDependency\ndesiredObj: {apiVersion: v1, kind: A}\noutput: {dependencies: \
        [{apiVersion: v1, kind: Secret, name: s}]}\n---\nname: empty list\noperation: AggregateStatus\ndesiredObj: \
        {apiVersion: v1, kind: A}\nstatusItems: []\noutput: {aggregatedStatus: {apiVersion: v1, kind: A, status: \
        {n: 0}}}\n---\nname: no list\noperation: AggregateStatus\ndesiredObj: {apiVersion: v1, kind: A}\noutput: \
        {aggregatedStatus: {apiVersion: v1, kind: A}}\n";
    let folder = folder(
        "karmada",
        &[("customization.yaml", customization), ("a_test.yaml", cases)],
    );
    check(&folder, &["--test", "."], 0, &["4 passed, 0 failed"]);
}
