#!/usr/bin/env bash
# Checks this folder with Helm, kubectl and promtool. Missing tools are reported and their checks skipped.
#
#   check.sh            lint, render, compare, test rules
#   check.sh --server   the same, and a server-side dry run of every object on the API server of $KUBECONFIG
#
# $HELM, $KUBECTL and $PROMTOOL set the programs. The tests of `bulkhead-tidy` make the checks that need none of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

helm=${HELM:-helm} kubectl=${KUBECTL:-kubectl} promtool=${PROMTOOL:-promtool}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

passed=0 failed=0 skipped=0
check() {
    local what=$1
    shift
    if "$@" >"$out/log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok    %s\n' "$what"
    else
        failed=$((failed + 1))
        printf 'FAIL  %s\n' "$what"
        sed 's/^/      /' "$out/log"
    fi
}
there() {
    command -v "$1" >/dev/null && return
    skipped=$((skipped + 1))
    printf 'skip  %s is not there\n' "$1"
    return 1
}

render() { "$helm" template bulkhead chart --namespace karmada-system "$@"; }
render_to() {
    local file=$1
    shift
    render "$@" >"$file"
}
# Succeeds if the chart rejects the values for the given reason.
refuses() {
    local why=$1
    shift
    if render "$@" >"$out/refused" 2>&1; then
        echo "it was rendered"
        return 1
    fi
    grep -q -- "$why" "$out/refused" || { cat "$out/refused" && return 1; }
}
# Prints the objects of kinds that every API server has.
standard() { awk 'BEGIN { RS = "---\n" } !/apiVersion: monitoring.coreos.com/ { printf "---\n%s", $0 }' "$1"; }
offer() { standard "$1" | "$kubectl" apply --server-side --force-conflicts --dry-run=server -f -; }

# Compares the base and components with the chart, with or without a journal. Both are rendered by kustomize, without
# the labels that only Helm sets.
same_as_chart() {
    mkdir -p "$out/chart"
    render --set controlPlane.kubeconfigSecret.name=bulkhead-kubeconfig --set "journal.enabled=$1" \
        >"$out/chart/rendered.yaml" || return 1
    sed -i -E '/^ *(helm.sh\/chart|app.kubernetes.io\/managed-by|app.kubernetes.io\/version): /d' "$out/chart/rendered.yaml"
    printf 'resources: [rendered.yaml]\nsortOptions: {order: legacy}\n' >"$out/chart/kustomization.yaml"
    mkdir -p "$out/base"
    overlay "$out/base/rendered.yaml" base "${@:2}" || return 1
    printf 'resources: [rendered.yaml]\nsortOptions: {order: legacy}\n' >"$out/base/kustomization.yaml"
    "$kubectl" kustomize "$out/chart" >"$out/chart.yaml" || return 1
    "$kubectl" kustomize "$out/base" >"$out/base.yaml" || return 1
    diff -u "$out/base.yaml" "$out/chart.yaml"
}

# Renders an overlay with one part of kustomize/ as its resource and others as its components.
overlay() {
    local file=$1 from
    mkdir -p "$out/overlay"
    # kustomize rejects absolute paths.
    from=$(realpath --relative-to "$out/overlay" "$PWD/kustomize")
    printf 'resources: [%s]\ncomponents:\n' "$from/$2" >"$out/overlay/kustomization.yaml"
    shift 2
    [ $# = 0 ] || printf -- "- $from/%s\n" "$@" >>"$out/overlay/kustomization.yaml"
    "$kubectl" kustomize "$out/overlay" >"$file"
}
# Succeeds if a file contains a text in exactly that many lines.
has() { [ "$(grep -c -- "$2" "$1")" = "$3" ] || { cat "$1" && return 1; }; }
# Succeeds if the program gets both modes and the role of each mode is bound.
several() {
    render_to "$out/several.yaml" --set controlPlane.inCluster=true --set webhook.enabled=true "$@" || return 1
    has "$out/several.yaml" "- --mode=interpret,finish$" 1 && has "$out/several.yaml" "^  name: bulkhead-finish$" 3 &&
        has "$out/several.yaml" "^  name: bulkhead-interpret$" 3 && has "$out/several.yaml" "name: bulkhead-all" 0
}

has_helm=no
if there "$helm"; then
    has_helm=yes
    for values in chart/ci/*-values.yaml; do
        name=$(basename "$values" -values.yaml)
        check "helm lint, $name" "$helm" lint --strict chart --values "$values"
        check "helm template, $name" render_to "$out/$name.yaml" --values "$values"
    done
    secret=controlPlane.kubeconfigSecret.name=k
    check "the chart wants a control plane" refuses "either kubeconfigSecret.name or inCluster"
    check "the chart wants only one" refuses "either" --set $secret --set controlPlane.inCluster=true
    check "the chart wants one source of plugins" refuses "/plugins" --set $secret \
        --set plugins.configMap=a --set plugins.volume.emptyDir.medium=Memory
    check "mode interpret wants the webhook" refuses "webhook.enabled" --set $secret --set mode=interpret
    check "mode interpret takes no client certificates" refuses "webhook.clientCASecret" --set $secret \
        --set mode=interpret --set webhook.enabled=true --set webhook.clientCASecret=clients
    check "the chart knows its values" refuses "not allowed" --set $secret --set replica=3
    check "the chart knows the modes" refuses "/mode" --set $secret --set mode=finish\\,all\\,some
    check "mode report goes with no other" refuses "only reports" --set $secret --set mode=report\\,finish
    check "modes by commas" several --set mode=interpret\\,finish
    check "modes as a list" several --set 'mode={interpret,finish}'
    check "the default mode owns nothing" render_to "$out/default.yaml" --set $secret
    check "and says so" has "$out/default.yaml" "- --mode=report$" 1
    check "a volume of its own for each journal" render_to "$out/journal.yaml" --set $secret \
        --set 'journal.volume.ephemeral.volumeClaimTemplate.spec.accessModes={ReadWriteOnce}' \
        --set journal.volume.ephemeral.volumeClaimTemplate.spec.resources.requests.storage=1Gi
    check "no journal that pods share" refuses "persistentVolumeClaim" --set $secret \
        --set journal.volume.persistentVolumeClaim.claimName=shared
fi
if there "$kubectl"; then
    for mode in all evict finish report interpret; do
        check "kustomize, role $mode" "$kubectl" kustomize "chart/rbac/$mode"
    done
    check "kustomize, in-cluster with every component" overlay "$out/overlay.yaml" in-cluster plugins journal webhook \
        webhook-certificate
    check "kustomize, the webhook with a certificate that it makes" overlay "$out/webhook.yaml" base webhook
    check "kustomize, agent" overlay "$out/agent.yaml" agent
    if [ $has_helm = yes ]; then
        check "base and chart without a journal are the same" same_as_chart false
        check "base with a journal and chart are the same" same_as_chart true journal
    fi
fi
if there "$promtool"; then
    check "promtool check rules" "$promtool" check rules chart/monitoring/alerts.yaml
    check "promtool test rules" "$promtool" test rules chart/monitoring/alerts_test.yaml
fi
if [ "${1:-}" = --server ]; then
    for file in "$out"/{sidecar,alone,monitoring,several,default,journal,overlay,webhook,agent}.yaml; do
        [ -f "$file" ] && check "the API server takes $(basename "$file" .yaml)" offer "$file"
    done
fi
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
