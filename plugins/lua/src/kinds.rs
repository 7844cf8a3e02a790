//! Kinds that the library interprets.

/// A kind of object that the library interprets.
#[derive(Debug)]
pub struct Kind {
    /// `group/version` of the objects.
    pub api_version: &'static str,
    /// Kind of the objects.
    pub kind: &'static str,
    /// True if the library interprets its health.
    pub has_health: bool,
    /// Text of its `customization.yaml`.
    pub text: &'static str,
}

macro_rules! kind {
    ($api_version:literal, $kind:literal, has_health: $has_health:literal) => {
        Kind {
            api_version: $api_version,
            kind: $kind,
            has_health: $has_health,
            text: include_str!(concat!("../kinds/", $api_version, "/", $kind, "/customization.yaml")),
        }
    };
    ($api_version:literal, $kind:literal) => {
        kind!($api_version, $kind, has_health: true)
    };
}

/// All kinds, by API version and name.
pub const KINDS: &[Kind] = &[
    kind!("apps.kruise.io/v1alpha1", "AdvancedCronJob", has_health: false),
    kind!("apps.kruise.io/v1alpha1", "BroadcastJob"),
    kind!("apps.kruise.io/v1alpha1", "CloneSet"),
    kind!("apps.kruise.io/v1alpha1", "DaemonSet"),
    kind!("apps.kruise.io/v1alpha1", "SidecarSet"),
    kind!("apps.kruise.io/v1alpha1", "UnitedDeployment"),
    kind!("apps.kruise.io/v1beta1", "StatefulSet"),
    kind!("argoproj.io/v1alpha1", "Workflow"),
    kind!("batch.volcano.sh/v1alpha1", "Job"),
    kind!("flink.apache.org/v1beta1", "FlinkDeployment"),
    kind!("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease"),
    kind!("kubeflow.org/v1", "Notebook"),
    kind!("kubeflow.org/v1", "PyTorchJob"),
    kind!("kubeflow.org/v1", "TFJob"),
    kind!("kubeflow.org/v2beta1", "MPIJob"),
    kind!("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
    kind!("kyverno.io/v1", "ClusterPolicy"),
    kind!("kyverno.io/v1", "Policy"),
    kind!("ray.io/v1", "RayCluster"),
    kind!("ray.io/v1", "RayJob"),
    kind!("ray.io/v1", "RayService"),
    kind!("source.toolkit.fluxcd.io/v1", "GitRepository"),
    kind!("source.toolkit.fluxcd.io/v1beta2", "Bucket"),
    kind!("source.toolkit.fluxcd.io/v1beta2", "HelmChart"),
    kind!("source.toolkit.fluxcd.io/v1beta2", "HelmRepository"),
    kind!("source.toolkit.fluxcd.io/v1beta2", "OCIRepository"),
    kind!("sparkoperator.k8s.io/v1beta2", "SparkApplication"),
];

impl Kind {
    /// Returns the kind with this API version and name, if the library interprets it.
    pub fn of(api_version: &str, kind: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|known| (known.api_version, known.kind) == (api_version, kind))
    }

    /// Returns its directory in the source tree, relative to `plugins/lua`.
    pub fn folder(&self) -> String {
        format!("kinds/{}/{}", self.api_version, self.kind)
    }
}
