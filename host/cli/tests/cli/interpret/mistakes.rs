//! `bulkhead interpret --check`: mistakes, warnings and unusable input.

use super::{GAME, check, folder, root};

#[test]
fn a_script_that_fails_is_reported_with_its_line_and_ends_with_1() {
    let script = "function InterpretHealth(obj)\n  local spec = obj.spec\n  return spec.missing.field\nend\n";
    let customization = format!(
        "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {{name: a}}\nspec:\n  \
         target: {{apiVersion: v1, kind: A}}\n  customizations:\n    healthInterpretation:\n      luaScript: |\n        {}\n",
        script.trim_end().replace('\n', "\n        ")
    );
    let object = "apiVersion: v1\nkind: A\nspec: {}\n";
    let folder = folder(
        "fails",
        &[("a.lua", script), ("a.yaml", &customization), ("object.yaml", object)],
    );
    let run = ["--operation", "InterpretHealth", "--observed-file", "object.yaml", "-f"];
    check(
        &folder,
        &[&run[..], &["a.lua"]].concat(),
        1,
        &["Execute InterpretHealth error: PluginTrapped: a.lua:3:", "'field'"],
    );
    check(
        &folder,
        &[&run[..], &["a.yaml"]].concat(),
        1,
        &["a.yaml:11:", "(in healthInterpretation)"],
    );
}

#[test]
fn unusable_input_ends_with_2_and_a_reason() {
    let game = root().join(GAME);
    let run = |more: &[&str], parts: &[&str]| {
        let mut arguments = vec!["-f", "customization.yaml", "--operation"];
        arguments.extend(more);
        check(&game, &arguments, 2, parts);
    };
    run(&["InterpretHealth"], &["needs --desired-file or --observed-file"]);
    run(
        &[
            "InterpretHealth",
            "--desired-file",
            "game.yaml",
            "--observed-file",
            "game.yaml",
        ],
        &["about one object"],
    );
    run(
        &["Retain", "--desired-file", "game.yaml"],
        &["both --desired-file and --observed-file"],
    );
    run(
        &["InterpretHealth", "--observed-file", "gone.yaml"],
        &["reading gone.yaml"],
    );
    run(
        &["InterpretStatus", "--observed-file", "game.yaml"],
        &[
            "rule is not enabled",
            "no rule for that operation on example.io/v1 Game",
        ],
    );
    run(&["Prune"], &["InterpretHealth"]);
    check(&game, &["--check"], 2, &["--check needs --filename"]);
    check(&game, &["-f", "gone.yaml", "--check"], 2, &["there is no gone.yaml"]);
    check(&game, &[], 2, &["--operation"]);
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    let head = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: a}\n\
                spec:\n  target: {apiVersion: v1, kind: A}\n  customizations:\n";
    let found = |rules: &str, part: &str| {
        let folder = folder("check", &[("a.yaml", &format!("{head}{rules}"))]);
        check(&folder, &["-f", "a.yaml", "--check"], 1, &[part]);
    };
    found(
        "    retention:\n      luaScript: |\n        function Retain(a, b)\n          return a b\n",
        "a.yaml:10:20:",
    );
    found(
        "    retention:\n      luaScript: 'local x = 1'\n",
        "no global function Retain",
    );
    found(
        "    retention:\n      luaScript: 'Retain = 1'\n",
        "Retain is a number, not a function",
    );
    found(
        "    retentoin:\n      luaScript: 'x'\n",
        "a.yaml:7:5: spec.customizations.retentoin: unknown field, did you mean retention?",
    );
    let two = "function GetReplicas(o) return 1 end function InterpretHealth(o) return true end";
    found(
        &format!("    replicaResource:\n      luaScript: '{two}'\n"),
        "the script defines InterpretHealth too",
    );
    let text = "function InterpretHealth(o) return 'yes' end";
    found(
        &format!("    healthInterpretation:\n      luaScript: \"{text}\"\n"),
        "InterpretHealth returned \"yes\"",
    );
    let changing = "function GetReplicas(o) o.spec.replicas = 1 return 1 end";
    found(
        &format!("    replicaResource:\n      luaScript: '{changing}'\n"),
        "at argument 1.spec.replicas",
    );
    let misspelt = "function InterpretHealth(observedObj)\n          return observedObject.status == nil\n        end";
    let rule = format!("    healthInterpretation:\n      luaScript: |\n        {misspelt}\n");
    found(
        &rule,
        "a.yaml:10:18: observedObject is not defined; did you mean observedObj?",
    );
    let zero = "function InterpretHealth(o) return o.status.conditions[0].type == 'Ready' end";
    found(
        &format!("    healthInterpretation:\n      luaScript: \"{zero}\"\n"),
        "conditions[0] is nil: lists begin at 1",
    );
    let renamed = "function InterpretHealt(o) return true end";
    found(
        &format!("    healthInterpretation:\n      luaScript: '{renamed}'\n"),
        "; is InterpretHealt meant?",
    );
    found(
        "    retention:\n      luaScript: |\n        local x = 1\n",
        "a.yaml:8: the script defines no global function",
    );
    found(
        "    retention:\n      luaScript: |\n        ::a:: f()\n        ::a::\n",
        "a.yaml:10:9: label a is already defined on line 9",
    );
    let endless = "function GetReplicas(o) while true do end end";
    found(
        &format!("    replicaResource:\n      luaScript: '{endless}'\n"),
        "used up its",
    );
    check(
        &root().join(GAME),
        &["-f", "mistakes.yaml", "--check"],
        1,
        &["mistakes.yaml:18:9: ReflectStatus modifies its input"],
    );
    check(
        &root().join(GAME),
        &["-f", "customization.yaml", "--check"],
        0,
        &["PASS", "UNSET"],
    );
}

/// karmadactl reads both.
#[test]
fn yaml_that_only_go_accepts_is_read_with_a_warning() {
    let customization = "apiVersion: config.karmada.io/v1alpha1\nkind: Pod\nkind: ResourceInterpreterCustomization\n\
                         metadata: {name: a}\nspec:\n  target: {apiVersion: v1, kind: A}\n  customizations:\n    \
                         healthInterpretation:\n      luaScript: 'function InterpretHealth(o)\n      return true\n      end'\n";
    let files = [("a.yaml", customization), ("object.yaml", "apiVersion: v1\nkind: A\n")];
    let folder = folder("loose", &files);
    let warnings = [
        "warning: a.yaml: line 3: the key \"kind\" is repeated; the last value of each key counts",
        "warning: a.yaml: line 10: a line of a quoted text must be indented further than its key",
    ];
    let run = [
        "-f",
        "a.yaml",
        "--operation",
        "InterpretHealth",
        "--observed-file",
        "object.yaml",
    ];
    check(&folder, &run, 0, &[&warnings[..], &["healthy:\ntrue"]].concat());
    check(
        &folder,
        &["-f", "a.yaml", "--check"],
        0,
        &[&warnings[..], &["PASS"]].concat(),
    );
}

#[test]
fn mistakes_in_the_body_of_a_health_script_are_reported_with_their_line() {
    let head = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: a}\n\
                spec:\n  target: {apiVersion: v1, kind: A}\n  customizations:\n";
    let health = |body: &str, part: &str| {
        let script = format!("function InterpretHealth(o)\n          {body}\n        end");
        let rule = format!("    healthInterpretation:\n      luaScript: |\n        {script}\n");
        let folder = folder("check-health", &[("a.yaml", &format!("{head}{rule}"))]);
        check(&folder, &["-f", "a.yaml", "--check"], 1, &[part]);
    };
    health(
        "return string.fromat('%s', 1) == o",
        "a.yaml:10:18: there is no function string.fromat; did you mean",
    );
    health(
        "return os.getenv('A') == nil",
        "a.yaml:10:18: there is no function os.getenv",
    );
    health(
        "for k in pairs(nil) do end return true",
        "a.yaml:10:20: pairs(nil) fails, it needs a table",
    );
    health(
        "return 'yes'",
        "a.yaml:9: InterpretHealth returned \"yes\", not a boolean",
    );
    health("repeat until o.status == 1", "a.yaml:10: used up its");
    health(
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "a.yaml:10: used up its memory of 67108864 bytes",
    );
}

#[test]
fn what_may_be_wrong_is_a_warning_and_no_failure() {
    let head = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: a}\n\
                spec:\n  target: {apiVersion: v1, kind: A}\n  customizations:\n";
    let rule =
        "    healthInterpretation:\n      luaScript: 'function InterpretHealth(o) return (o.status or {}).up end'\n";
    let nothing = "    statusReflection:\n      luaScript: 'function ReflectStatus(o) end'\n";
    let two = format!("{head}{rule}---\n{head}{nothing}---\nkind: Pod\napiVersion: v1\nmetadata: {{name: p}}\n");
    let folder = folder("warnings", &[("a.yaml", &format!("{head}{rule}")), ("two.yaml", &two)]);
    check(
        &folder,
        &["-f", "a.yaml", "--check"],
        0,
        &["InterpretHealth:           PASS", "WARNING: a.yaml:", "returned nil"],
    );
    let other = "SOURCE: p\nERROR: two.yaml:19:7: not a ResourceInterpreterCustomization, but v1 Pod";
    check(
        &folder,
        &["-f", "two.yaml", "--check"],
        1,
        &[
            "PASS",
            "InterpretStatus:           ERROR: two.yaml:",
            "returns nothing",
            other,
        ],
    );
    let fresh = "function InterpretHealth(o)\n  return o.status.ready == true\nend";
    let folder = self::folder("fresh", &[("a.lua", fresh)]);
    let cause = "WARNING: a.lua:2: attempt to index nil with 'ready': o.status is nil, test it first";
    check(
        &folder,
        &["-f", "a.lua", "--check"],
        0,
        &["PASS", cause, "asked about a sample"],
    );
    let nil = "function InterpretHealth(o)\n  for _ in pairs(o.nothing) do end\n  return true\nend";
    let folder = self::folder("nil", &[("a.lua", nil)]);
    check(
        &folder,
        &["-f", "a.lua", "--check"],
        0,
        &["WARNING: a.lua:2:", "o.nothing is nil, test it first"],
    );
    let folder = self::folder(
        "portable",
        &[(
            "a.lua",
            "function GetReplicas(o)\n  local n = 1\n  n += 1\n  return n\nend",
        )],
    );
    // A bare script may be for this program only, so this is a warning.
    check(
        &folder,
        &["-f", "a.lua", "--check"],
        0,
        &["PASS", "WARNING: a.lua:3:5: Karmada does not take +="],
    );
}
