//! Shell blocks that no test runs, with the reasons.

const MEMBER: &str = "needs the kubeconfig of a real member cluster";
const CONTROL_PLANE: &str = "needs a real control plane with objects of the reader";
const REGISTRY: &str = "needs a registry; host/cli/tests/cli/images.rs runs the same commands";
const TOOLCHAIN: &str = "needs a toolchain; `cargo xtask full languages` runs the same commands";
const RELEASE: &str = "needs a release of the Helm chart";
const PACKAGES: &str = "needs the files of a release, which `cargo xtask release` checks";
const CONSOLE: &str = "serves until it is interrupted; host/cli/tests/cli/console.rs starts the same commands";
const OWN_REGISTRY: &str = "needs a registry of the reader";
const COSIGN: &str = "needs a signed release; `cargo xtask full install` runs the same commands";

/// Blocks that no test runs: page, first line, and the reason.
pub(super) const NOT_RUN: &[(&str, &str, &str)] = &[
    (
        "README.md",
        "$ cargo xtask guests                 # example plugins, into target/guests",
        "builds the program",
    ),
    (
        "README.md",
        "$ export KUBECONFIG=$PWD/karmada.kubeconfig",
        "short form of the tutorial that the e2e tests run",
    ),
    ("docs/src/how-to/install.md", "$ sha256sum --check SHA256SUMS", PACKAGES),
    (
        "docs/src/how-to/install.md",
        "$ cosign verify-blob --insecure-ignore-tlog --key bulkhead.pub --bundle SHA256SUMS.sigstore.json SHA256SUMS",
        COSIGN,
    ),
    (
        "docs/src/how-to/install.md",
        "$ cosign verify --insecure-ignore-tlog --key bulkhead.pub registry.example.com/bulkhead@sha256:DIGEST",
        COSIGN,
    ),
    ("docs/src/how-to/install.md", "$ git checkout COMMIT", PACKAGES),
    (
        "docs/src/how-to/install.md",
        "$ tar -xzf bulkhead-0.1.0-x86_64-unknown-linux-musl.tar.gz",
        PACKAGES,
    ),
    (
        "docs/src/how-to/install.md",
        "$ kubectl krew install --manifest=bulkhead-0.1.0-krew.yaml \\",
        PACKAGES,
    ),
    (
        "docs/src/how-to/install.md",
        "$ skopeo copy --all oci-archive:bulkhead-0.1.0-image.tar docker://registry.example.com/bulkhead:0.1.0",
        OWN_REGISTRY,
    ),
    (
        "docs/src/how-to/install.md",
        "$ helm push bulkhead-0.1.0.tgz oci://registry.example.com/charts",
        OWN_REGISTRY,
    ),
    (
        "docs/src/how-to/install.md",
        "$ kubectl --kubeconfig KARMADA apply --server-side -f bulkhead-0.1.0-crds.yaml",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/install.md",
        "$ tar -xzf bulkhead-0.1.0-kustomize.tar.gz",
        PACKAGES,
    ),
    (
        "docs/src/how-to/distribute-plugins.md",
        "$ bulkhead plugin new hold --kind eviction-check --lang lua",
        REGISTRY,
    ),
    (
        "docs/src/how-to/distribute-plugins.md",
        "$ oras push registry.example.com/plugins/hold:1.0 hold.lua:application/vnd.bulkhead.lua.v1",
        REGISTRY,
    ),
    (
        "docs/src/how-to/distribute-plugins.md",
        "$ bulkhead plugin test hold -o json > report.json",
        REGISTRY,
    ),
    (
        "docs/src/how-to/distribute-plugins.md",
        "$ bulkhead run --plugin-directory plugins --image-cache /var/lib/bulkhead/images --plugin-trust trust.yaml",
        REGISTRY,
    ),
    (
        "docs/src/how-to/distribute-plugins.md",
        "$ openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out team.key",
        REGISTRY,
    ),
    (
        "docs/src/how-to/distribute-plugins.md",
        "$ bulkhead plugin save plugins.tar registry.example.com/plugins/hold:1.0",
        REGISTRY,
    ),
    (
        "docs/src/how-to/distribute-plugins.md",
        "$ cosign sign registry.example.com/plugins/hold@sha256:…",
        "needs an identity of the public instance of Sigstore; host/oci/src/signature/certificate/tests.rs has bundles \
         of it",
    ),
    (
        "docs/src/how-to/join-a-member.md",
        "$ bulkhead crds | kubectl apply --server-side -f -",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/join-a-member.md",
        "$ bulkhead join member1 --cluster-kubeconfig member1.kubeconfig",
        MEMBER,
    ),
    (
        "docs/src/how-to/join-a-member.md",
        "$ bulkhead join member2 --cluster-kubeconfig member2.kubeconfig --pull agent.kubeconfig",
        MEMBER,
    ),
    (
        "docs/src/how-to/join-a-member.md",
        "$ bulkhead unjoin member1 --cluster-kubeconfig member1.kubeconfig",
        MEMBER,
    ),
    (
        "docs/src/how-to/serve-an-interpreter.md",
        r#"$ kubectl get works -A -o json | jq -r '.items[] | select(any(.status.manifestStatuses[]?; .health == "Unknown")) | .metadata.namespace + "/" + .metadata.name'"#,
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/serve-an-interpreter.md",
        "$ kubectl -n karmada-system rollout restart deployment karmada-controller-manager",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/join-a-member.md",
        "$ bulkhead unjoin member1 --cluster-kubeconfig member1.kubeconfig --gone-control-plane UID",
        MEMBER,
    ),
    (
        "docs/src/how-to/pause-evictions.md",
        "$ bulkhead pause --reason \"incident 4711\"",
        CONTROL_PLANE,
    ),
    ("docs/src/how-to/pause-evictions.md", "$ bulkhead resume", CONTROL_PLANE),
    (
        "docs/src/how-to/read-a-failover-record.md",
        "$ kubectl --kubeconfig KARMADA -n default get failoverrecords",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/read-a-failover-record.md",
        "$ kubectl --kubeconfig KARMADA apply -f host/deploy/chart/rbac/view.yaml",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/rehearse-a-takeover.md",
        "$ bulkhead doctor --for all --config bulkhead.yaml",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/rehearse-a-takeover.md",
        "$ bulkhead report --journal journal --kubeconfig bulkhead.kubeconfig",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/roll-back.md",
        "$ bulkhead pause --kubeconfig KARMADA --reason \"roll back\"",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/roll-back.md",
        "$ helm rollback bulkhead --namespace karmada-system",
        RELEASE,
    ),
    (
        "docs/src/how-to/roll-back.md",
        "$ bulkhead resume --kubeconfig KARMADA",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/simulate-and-trials.md",
        "$ bulkhead simulate target/random/random-seed-17.yaml",
        "the file is written only when a trial fails",
    ),
    (
        "docs/src/how-to/take-it-out-again.md",
        "$ helm uninstall bulkhead --namespace karmada-system",
        RELEASE,
    ),
    (
        "docs/src/how-to/take-it-out-again.md",
        "$ bulkhead uninstall --mode MODES --kubeconfig KARMADA --dry-run",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/take-it-out-again.md",
        "$ kubectl --kubeconfig KARMADA delete crd evictionpauses.bulkhead.dev clusterdrains.bulkhead.dev plugins.bulkhead.dev \\",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/upgrade.md",
        "$ bulkhead crds --group bulkhead.dev | kubectl --kubeconfig KARMADA apply --server-side -f -",
        MEMBER,
    ),
    (
        "docs/src/how-to/use-the-console.md",
        "$ bulkhead console --journal target/use-the-console",
        CONSOLE,
    ),
    (
        "docs/src/how-to/use-the-console.md",
        "$ bulkhead console --kubeconfig karmada.kubeconfig",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/use-the-console.md",
        "$ bulkhead run --embedded --members 3 --journal journal --console-bind-address 127.0.0.1:10372",
        CONSOLE,
    ),
    (
        "docs/src/reference/modes-and-roles.md",
        "$ bulkhead account --mode MODE",
        CONTROL_PLANE,
    ),
    (
        "docs/src/how-to/read-the-logs.md",
        "kubectl -n karmada-system logs -l app.kubernetes.io/name=bulkhead | grep 3f9a1c2e55-41",
        "needs the pods of the Helm chart",
    ),
    (
        "docs/src/reference/command-line.md",
        "$ bulkhead completion bash > ~/.local/share/bash-completion/completions/bulkhead",
        "writes into the home of the reader",
    ),
    (
        "docs/src/reference/plugins-yaml.md",
        "$ bulkhead plugin object vital-first.lua | kubectl apply --server-side -f -",
        CONTROL_PLANE,
    ),
    (
        "docs/src/runbook.md",
        "$ bulkhead pause --kubeconfig KARMADA --reason \"under investigation\"",
        CONTROL_PLANE,
    ),
    (
        "docs/src/runbook.md",
        "$ kubectl -n karmada-system get pods -l app.kubernetes.io/name=bulkhead",
        "needs the pods of the Helm chart",
    ),
    (
        "docs/src/tutorials/beside-karmada.md",
        "$ bulkhead account --mode evict --kubeconfig karmada.kubeconfig --apply",
        "mode evict needs Karmada with other flags, which the reader sets",
    ),
    (
        "docs/src/tutorials/beside-karmada.md",
        "$ kubectl --kubeconfig karmada.kubeconfig get resourcebindings,clusterresourcebindings -A \\",
        CONTROL_PLANE,
    ),
    (
        "docs/src/tutorials/move-lua-scripts.md",
        "$ mkdir -p fleet",
        CONTROL_PLANE,
    ),
    (
        "docs/src/tutorials/move-lua-scripts.md",
        "$ bulkhead history --journal journal --decision PluginFault",
        CONTROL_PLANE,
    ),
    (
        "docs/src/tutorials/plugin-in-c.md",
        "$ cd target/in-c/enough",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-c.md",
        "$ bulkhead plugin build",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-go.md",
        "$ cd target/in-go/enough",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-go.md",
        "$ bulkhead plugin build",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-javascript.md",
        "$ cd target/in-javascript/enough",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-javascript.md",
        "$ bulkhead plugin build",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-python.md",
        "$ cd target/in-python/enough",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-python.md",
        "$ bulkhead plugin build",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-typescript.md",
        "$ cd target/in-typescript/enough",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-typescript.md",
        "$ bulkhead plugin build",
        TOOLCHAIN,
    ),
    (
        "docs/src/tutorials/plugin-in-c.md",
        "$ bulkhead plugin push registry.example.com/plugins/enough:1.0 target/in-c/enough",
        REGISTRY,
    ),
    (
        "docs/src/tutorials/plugin-in-go.md",
        "$ bulkhead plugin push registry.example.com/plugins/enough:1.0 target/in-go/enough",
        REGISTRY,
    ),
    (
        "docs/src/tutorials/plugin-in-javascript.md",
        "$ bulkhead plugin push registry.example.com/plugins/enough:1.0 target/in-javascript/enough",
        REGISTRY,
    ),
    (
        "docs/src/tutorials/plugin-in-python.md",
        "$ bulkhead plugin push registry.example.com/plugins/enough:1.0 target/in-python/enough",
        REGISTRY,
    ),
    (
        "docs/src/tutorials/plugin-in-typescript.md",
        "$ bulkhead plugin push registry.example.com/plugins/enough:1.0 target/in-typescript/enough",
        REGISTRY,
    ),
    (
        "docs/src/tutorials/first-wasm-check.md",
        "$ bulkhead plugin push registry.example.com/plugins/enough:1.0 target/first-wasm/enough",
        REGISTRY,
    ),
    (
        "docs/src/tutorials/what-if-before-maintenance.md",
        "$ mkdir export",
        CONTROL_PLANE,
    ),
    (
        "docs/src/tutorials/what-if-before-maintenance.md",
        "$ bulkhead what-if --kubeconfig hub.yaml --down member1 --rate 2 --report what-if.html \\",
        CONTROL_PLANE,
    ),
];
