//! `bulkhead interpret`: output and exit codes.

mod cases;
mod mistakes;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_path_buf()
}

/// Creates the test's own folder with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = super::folder(&format!("interpret/{name}"));
    for (file, text) in files {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    folder
}

/// Runs `bulkhead interpret` in a folder. Returns exit code, standard output and standard error.
fn interpret(folder: &Path, arguments: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    let mut command = super::bulkhead();
    command.arg("interpret").args(arguments).current_dir(folder);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input closes the pipe, which is not an error.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const GAME: &str = "examples/interpreters/game";

#[track_caller]
fn check(folder: &Path, arguments: &[&str], code: i32, parts: &[&str]) {
    let (got, message, complaint) = interpret(folder, arguments, "");
    assert_eq!(got, Some(code), "{arguments:?}: {message}{complaint}");
    let message = message + &complaint;
    for part in parts {
        assert!(message.contains(part), "{arguments:?}: no {part:?} in: {message}");
    }
}

#[test]
fn each_operation_of_a_customization_can_be_run() {
    let game = root().join(GAME);
    let run = |operation: &str, more: &[&str], parts: &[&str]| {
        let mut arguments = vec!["-f", "customization.yaml", "--operation", operation];
        arguments.extend(more);
        check(&game, &arguments, 0, parts);
    };
    let unhealthy = "---\n# [1/1] healthy:\nfalse\n# ServersDown: 2 of 3 servers are up\n";
    run("InterpretHealth", &["--observed-file", "game.yaml"], &[unhealthy]);
    run(
        "interpretreplica",
        &["--desired-file", "game.yaml"],
        &["# [1/2] replica:\n3\n---\n# [2/2] requires:\n", "cpu: 500m"],
    );
    run(
        "ReviseReplica",
        &["--desired-file", "game.yaml", "--desired-replica", "1"],
        &["# [1/1] revised:", "servers: 1"],
    );
    run("ReviseReplica", &["--desired-file", "game.yaml"], &["servers: 0"]);
    run(
        "InterpretHealth",
        &["--observed-file", "game.yaml", "-o", "yaml"],
        &["health: Unhealthy", "reason: ServersDown"],
    );
    run(
        "InterpretHealth",
        &["--observed-file", "game.yaml", "-o", "json"],
        &["\"healthy\": false"],
    );
}

#[test]
fn objects_and_customizations_come_from_standard_input() {
    let game = root().join(GAME);
    let object = fs::read_to_string(game.join("game.yaml")).unwrap();
    let arguments = [
        "-f",
        "customization.yaml",
        "--operation",
        "InterpretReplica",
        "--desired-file",
        "-",
    ];
    assert!(interpret(&game, &arguments, &object).1.contains("replica:\n3"));
    let customization = fs::read_to_string(game.join("customization.yaml")).unwrap();
    let arguments = [
        "-f",
        "-",
        "--operation",
        "InterpretReplica",
        "--desired-file",
        "game.yaml",
    ];
    assert!(interpret(&game, &arguments, &customization).1.contains("replica:\n3"));
}

#[test]
fn the_interpreters_of_the_program_answer_without_a_file() {
    let clone_set = "apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {generation: 1}\n\
                     spec: {replicas: 2}\nstatus: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 1}\n";
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 2}\n";
    let folder = folder(
        "built-in",
        &[("clone-set.yaml", clone_set), ("deployment.yaml", deployment)],
    );
    let health = ["--operation", "InterpretHealth", "--observed-file"];
    check(
        &folder,
        &[&health[..], &["clone-set.yaml"]].concat(),
        0,
        &["false", "1 of 2 updated replicas"],
    );
    check(
        &folder,
        &["--operation", "InterpretReplica", "--desired-file", "deployment.yaml"],
        0,
        &["replica:\n2"],
    );
    check(
        &folder,
        &["--show", "list"],
        0,
        &["apps.kruise.io/v1alpha1/CloneSet", "ray.io/v1/RayJob"],
    );
    check(
        &folder,
        &["--show", "ray.io/v1/RayJob"],
        0,
        &["kind: ResourceInterpreterCustomization", "RayJob"],
    );
    check(&folder, &["--show", "ray.io/v1/Ray"], 2, &["`--show list` names all"]);
}

#[test]
fn scripts_of_argo_cd_are_understood() {
    let certificate = root().join("examples/interpreters/certificate");
    let arguments = [
        "-f",
        "health.lua",
        "--dialect",
        "argo",
        "--operation",
        "InterpretHealth",
        "--observed-file",
        "certificate.yaml",
    ];
    check(
        &certificate,
        &arguments,
        0,
        &["healthy:\nfalse", "# Degraded: the secret shop-tls does not exist"],
    );
    check(
        &certificate,
        &["-f", "health.lua", "--dialect", "argo", "--check"],
        0,
        &["PASS"],
    );
    let says = |status: &str, health: &str| {
        let script = format!("return {{ status = {status} }}");
        let files = [
            ("health.lua", script.as_str()),
            ("object.yaml", "apiVersion: v1\nkind: A\n"),
        ];
        let folder = folder("argo", &files);
        let arguments = [
            "-f",
            "health.lua",
            "--dialect",
            "argo",
            "--operation",
            "InterpretHealth",
            "--observed-file",
            "object.yaml",
            "--output",
            "yaml",
        ];
        check(&folder, &arguments, i32::from(health.is_empty()), &[health]);
    };
    says("'Healthy'", "health: Healthy");
    says("'Missing'", "health: Unhealthy");
    says("'Progressing'", "health: Unknown");
    says("'Suspended'", "health: Unknown");
    says("'Something'", "reason: UnknownStatus");
    says("7", "");
    let script = [
        ("health.lua", "return { status = 'Progressing' }"),
        ("object.yaml", "apiVersion: v1\nkind: A\n"),
    ];
    let arguments = [
        "-f",
        "health.lua",
        "--dialect",
        "argo",
        "--operation",
        "InterpretHealth",
        "--observed-file",
        "object.yaml",
    ];
    check(
        &self::folder("argo", &script),
        &arguments,
        0,
        &["# [1/1] healthy:\nnull\n# Unknown: Progressing\n"],
    );
}

#[test]
fn the_time_that_a_script_reads_is_noted() {
    let script =
        "function InterpretHealth(o)\n  return os.time() > 1767225600\nend\nfunction GetReplicas(o) return 1 end\n";
    let files = [("a.lua", script), ("object.yaml", "apiVersion: v1\nkind: A\n")];
    let folder = folder("clock", &files);
    let run = [
        "-f",
        "a.lua",
        "--operation",
        "InterpretHealth",
        "--observed-file",
        "object.yaml",
    ];
    let note = "note: os.time() and os.date() return 2026-01-01T00:00:00Z; --now sets another time";
    check(&folder, &run, 0, &["healthy:\nfalse", note]);
    let (code, answer, complaint) = interpret(&folder, &[&run[..], &["--now", "2026-01-01T00:00:01Z"]].concat(), "");
    assert_eq!((code, complaint.as_str()), (Some(0), ""), "{answer}");
    assert!(answer.contains("healthy:\ntrue"), "{answer}");
}

#[test]
fn lines_that_a_script_prints_are_shown_beside_the_result() {
    let script = "function InterpretHealth(o)\n  print('kind', o.kind)\n  return true\nend";
    let customization = format!(
        "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {{name: mine}}\nspec:\n  \
         target: {{apiVersion: v1, kind: A}}\n  customizations:\n    healthInterpretation:\n      luaScript: |\n        {}\n",
        script.replace('\n', "\n        ")
    );
    let files = [
        ("a.lua", script),
        ("a.yaml", &customization),
        ("object.yaml", "apiVersion: v1\nkind: A\n"),
    ];
    let folder = folder("printed", &files);
    let run = |file: &str, line: &str| {
        let arguments = [
            "-f",
            file,
            "--operation",
            "InterpretHealth",
            "--observed-file",
            "object.yaml",
        ];
        let (code, answer, complaint) = interpret(&folder, &arguments, "");
        assert_eq!((code, complaint.as_str()), (Some(0), line), "{answer}");
        assert!(
            answer.contains("healthy:\ntrue") && !answer.contains("kind"),
            "{answer}"
        );
    };
    run("a.lua", "a.lua [info] kind A\n");
    run("a.yaml", "mine [info] kind A\n");
}

#[test]
fn directories_are_gone_through_when_that_is_asked_for() {
    let head = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: a}\n\
                spec:\n  target: {apiVersion: v1, kind: A}\n  customizations:\n    healthInterpretation:\n      \
                luaScript: 'function InterpretHealth(o) return true end'\n";
    let folder = folder(
        "recursive",
        &[("all/below/a.yaml", head), ("object.yaml", "apiVersion: v1\nkind: A\n")],
    );
    let run = [
        "-f",
        "all",
        "--operation",
        "InterpretHealth",
        "--observed-file",
        "object.yaml",
    ];
    check(
        &folder,
        &run,
        2,
        &["there is no customization, script or component in all"],
    );
    check(&folder, &[&run[..], &["-R"]].concat(), 0, &["healthy:\ntrue"]);
    check(&folder, &["-f", "all", "-R", "--check"], 0, &["SOURCE: a", "PASS"]);
}

#[test]
fn status_items_are_documents_as_karmada_wants_them() {
    let game = root().join("examples/interpreters/game");
    let script = "function AggregateStatus(o, items)\n  o.status = {clusters = #items}\n  return o\nend\n";
    let items = "clusterName: m1\n---\nclusterName: m2\n";
    let files = [
        ("a.lua", script),
        ("items.yaml", items),
        ("list.yaml", "- {clusterName: m1}\n"),
        ("ill.yaml", "clusterName: m1\n---\nclusterName: m2\nhealth: Ill\n"),
        ("text.json", "{\"clusterName\": \"m1\",\n \"applied\": \"yes\"}"),
    ];
    let folder = folder("items", &files);
    fs::copy(game.join("game.yaml"), folder.join("game.yaml")).unwrap();
    let run = [
        "-f",
        "a.lua",
        "--operation",
        "AggregateStatus",
        "--desired-file",
        "game.yaml",
        "--status-file",
    ];
    check(
        &folder,
        &[&run[..], &["items.yaml"]].concat(),
        0,
        &["# [1/1] aggregatedStatus:", "clusters: 2"],
    );
    let refused = |file: &str, parts: &[&str]| check(&folder, &[&run[..], &[file]].concat(), 2, parts);
    refused("list.yaml", &["list.yaml:1:", ": status item 1 is a list"]);
    refused(
        "ill.yaml",
        &["ill.yaml:4:9: status item 2: health: unknown variant `Ill`"],
    );
    refused(
        "text.json",
        &["text.json:2:13: status item 1: applied: invalid type: string \"yes\""],
    );
}

#[test]
fn a_wrong_value_of_an_object_has_its_line_and_column() {
    let refused = |text: &str, part: &str| {
        let folder = folder("wrong-object", &[("a.yaml", text)]);
        let run = ["--operation", "InterpretHealth", "--observed-file", "a.yaml"];
        check(&folder, &run, 2, &[part]);
    };
    refused("kind: A\napiVersion: 7\n", "a.yaml:2:13: apiVersion: 7 is not a string");
    refused(
        "apiVersion: v1\nkind: ''\n",
        "a.yaml:2:7: not an object: kind is missing",
    );
    refused("apiVersion: v1\n", "a.yaml:1:1: not an object: kind is missing");
    refused(
        "apiVersion: v1\nkind: A\n---\napiVersion: v1\nkind: B\n",
        "a.yaml:4:1: a second document; the file must contain one object",
    );
    refused("# nothing\n", "a.yaml must contain one object");
    refused("apiVersion: v1\nkind: [\n", "a.yaml:2:7: ");
}

/// A component answers as a script does, and is compiled only once.
#[test]
fn a_component_is_asked_and_checked() {
    let guest = root().join("target/guests/game-interpreter.wasm");
    assert!(
        guest.is_file(),
        "{} is missing; run `cargo xtask guests`",
        guest.display()
    );
    let arena = "apiVersion: example.io/v1\nkind: Game\nmetadata: {name: arena}\nspec: {rooms: 4, mapFrom: caves}\n\
                 status: {phase: Running, openRooms: 3}\n";
    let folder = folder("component", &[("arena.yaml", arena), ("text.wasm", "no component")]);
    fs::copy(&guest, folder.join("game.wasm")).unwrap();
    let run = |operation: &str, more: &[&str], parts: &[&str]| {
        let fixed = [
            "-f",
            "game.wasm",
            "--plugin-cache",
            "kept",
            "--operation",
            operation,
            "--observed-file",
            "arena.yaml",
        ];
        check(&folder, &[&fixed[..], more].concat(), 0, parts);
    };
    run(
        "InterpretHealth",
        &[],
        &["# [1/1] healthy:\nfalse\n# RoomsClosed: 3 of 4 rooms are open\n"],
    );
    run("InterpretReplica", &[], &["# [1/2] replica:\n4\n", "cpu: 500m"]);
    run("ReviseReplica", &["--desired-replica", "2"], &["rooms: 2"]);
    run("InterpretDependency", &[], &["kind: ConfigMap", "name: caves"]);
    let kept = fs::read_dir(folder.join("kept")).unwrap().count();
    assert_eq!(kept, 1, "one component was compiled, and kept");
    check(
        &folder,
        &["-f", "game.wasm", "--check", "--plugin-cache", "off"],
        0,
        &["SOURCE: game.wasm\n    PASS\n"],
    );
    check(
        &folder,
        &["-f", "text.wasm", "--check"],
        1,
        &["ERROR: ", "is not WebAssembly in binary form"],
    );
}

#[test]
fn the_library_has_no_mistakes() {
    for file in [
        "apps.kruise.io/v1alpha1/CloneSet",
        "ray.io/v1/RayJob",
        "kyverno.io/v1/Policy",
    ] {
        let folder = root().join("plugins/lua/kinds").join(file);
        check(&folder, &["-f", "customization.yaml", "--check"], 0, &["PASS"]);
    }
}
