//! Random plugins, as scripts that are part of the scenario.

use serde_json::{Value, json};

use crate::trial::seeded_rng::SeededRng;

/// Scripts by file name.
const SCRIPTS: [(&str, &str); 8] = [
    (
        "hold.lua",
        "function EvictionCheck(binding, task, observed, now)\n  return {verdict = 'hold', reason = 'Freeze', recheckAfterSeconds = 7}\nend\n",
    ),
    (
        "careful.lua",
        "function EvictionCheck(binding, task, observed, now)\n  for _, item in ipairs(observed) do\n    if item.health ~= 'Healthy' then\n      return {verdict = 'hold', reason = 'NotAllHealthy'}\n    end\n  end\n  return {verdict = 'abstain'}\nend\n",
    ),
    (
        "broken.lua",
        "function EvictionCheck(binding, task, observed, now)\n  error('broken')\nend\n",
    ),
    (
        "garbage.lua",
        "function EvictionCheck(binding, task, observed, now)\n  return 42\nend\n",
    ),
    (
        "cheapest.lua",
        "function Score(binding, clusters, now)\n  local scores = {}\n  for index, cluster in ipairs(clusters) do\n    scores[index] = (index * 37) % 101\n  end\n  return scores\nend\n",
    ),
    (
        "greedy.lua",
        "function Score(binding, clusters, now)\n  return {1000}\nend\n",
    ),
    (
        "open.lua",
        "function Filter(binding, clusters, now)\n  local verdicts = {}\n  for index, cluster in ipairs(clusters) do\n    verdicts[index] = {fit = true}\n  end\n  return verdicts\nend\n",
    ),
    (
        "ready.lua",
        "function InterpretHealth(object)\n  local status = object.status or {}\n  return (status.readyReplicas or 0) == object.spec.replicas\nend\n",
    ),
];

/// Adds one or two plugins to some scenarios.
pub(super) fn draw(rng: &mut SeededRng, scenario: &mut Value) {
    if !rng.chance(35) {
        return;
    }
    let count = rng.between(1, 2);
    let mut names = std::collections::BTreeSet::new();
    let (mut files, mut plugins) = (json!({}), Vec::new());
    for _ in 0..count {
        let Some((file, script)) = rng.one_of(&SCRIPTS).filter(|(file, _)| names.insert(*file)) else {
            continue;
        };
        files[*file] = json!(script);
        let mut plugin = json!({"name": file.trim_end_matches(".lua"), "lua": file});
        if *file == "ready.lua" {
            plugin["kinds"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "apps/v1", "kind": "StatefulSet"}]);
        }
        plugins.push(plugin);
    }
    scenario["files"] = files;
    scenario["plugins"] = json!(plugins);
}
