//! `bulkhead unjoin --gone-control-plane`: cleans up in a member after a control plane that no longer exists.

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};

use super::account::{set_user, users};
use super::removal::{Removed, clear_member};
use super::{ACCOUNT, NAMESPACE};

/// Returns the command that cleans up after a control plane.
pub(super) fn command(name: &str, control_plane: &str) -> String {
    format!("bulkhead unjoin {name} --cluster-kubeconfig FILE --gone-control-plane {control_plane}")
}

/// Removes the use of the account in a member by a control plane that had `name` for the member, and the account if no
/// other control plane uses it. Returns lines that list the removed objects.
///
/// # Errors
///
/// Other control planes use the account, and this one does not.
pub(super) async fn forget(member: &Client, name: &str, control_plane: &str, dry_run: bool) -> anyhow::Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), NAMESPACE);
    let mut others = users(&accounts, ACCOUNT).await?;
    let used = others.remove(control_plane);
    let listed: Vec<_> = others.iter().map(|(uid, name)| format!("{uid} as {name}")).collect();
    match used {
        Some(known) if known != name => {
            bail!(
                "control plane {control_plane} knows the cluster as {known}; {}",
                command(&known, control_plane)
            )
        }
        // An account without users is one of an earlier version.
        None if !others.is_empty() => bail!(
            "control plane {control_plane} does not use the account {NAMESPACE}/{ACCOUNT} of the member; these do: {}",
            listed.join(", ")
        ),
        _ => {}
    }
    let done = if dry_run { " (dry run)" } else { "" };
    if !others.is_empty() {
        if !dry_run {
            set_user(&accounts, ACCOUNT, control_plane, None).await?;
        }
        return Ok(format!(
            "removed control plane {control_plane} from the users of {NAMESPACE}/{ACCOUNT}{done}\n\
             kept the account, which other control planes use: {}",
            listed.join(", ")
        ));
    }
    let mut removed = Removed::of(member, dry_run);
    let cleared = clear_member(&mut removed).await;
    let summary = removed.summary("in the member");
    cleared.with_context(|| {
        let done = summary.as_ref().map(|done| format!("{done}; ")).unwrap_or_default();
        format!("{done}cleaning up in the member")
    })?;
    let summary = summary.unwrap_or_else(|| "the member has no objects of Bulkhead".to_owned());
    Ok(format!(
        "{summary}\nkept: workloads that the control plane placed in the member"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::BINDING;
    use super::super::account::{apply, make_namespace};
    use super::super::testing::server;
    use super::*;

    /// Creates the account of a Push member with the control planes that use it.
    async fn used_by(control_planes: &[(&str, &str)]) -> (Client, Api<ServiceAccount>) {
        let member = server("m1").client();
        make_namespace(&member, NAMESPACE).await.unwrap();
        let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), NAMESPACE);
        apply(
            &accounts,
            json!({"metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}),
        )
        .await
        .unwrap();
        for (control_plane, name) in control_planes {
            set_user(&accounts, ACCOUNT, control_plane, Some(name)).await.unwrap();
        }
        (member, accounts)
    }

    #[tokio::test(start_paused = true)]
    async fn the_account_of_a_vanished_control_plane_is_removed_without_it() {
        let (member, accounts) = used_by(&[("uid-a", "m1")]).await;
        let rehearsed = forget(&member, "m1", "uid-a", true).await.unwrap();
        assert!(
            rehearsed.starts_with("would be removed in the member: ServiceAccount"),
            "{rehearsed}"
        );
        assert!(accounts.get_opt(ACCOUNT).await.unwrap().is_some());
        let message = forget(&member, "m1", "uid-a", false).await.unwrap();
        let removed = "removed in the member: ServiceAccount karmada-cluster/bulkhead, Namespace karmada-cluster\n";
        assert!(message.starts_with(removed) && !message.contains(BINDING), "{message}");
        assert!(accounts.get_opt(ACCOUNT).await.unwrap().is_none());
        let message = forget(&member, "m1", "uid-a", false).await.unwrap();
        assert!(
            message.starts_with("the member has no objects of Bulkhead\n"),
            "{message}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_that_a_living_control_plane_uses_stays() {
        let (member, accounts) = used_by(&[("uid-a", "m1"), ("uid-b", "eu-1")]).await;
        let message = forget(&member, "eu-1", "uid-b", false).await.unwrap();
        assert!(
            message.ends_with("kept the account, which other control planes use: uid-a as m1"),
            "{message}"
        );
        let left = users(&accounts, ACCOUNT).await.unwrap();
        assert_eq!(
            left.into_iter().collect::<Vec<_>>(),
            [("uid-a".to_owned(), "m1".to_owned())]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_control_plane_that_does_not_use_the_account_is_refused() {
        let (member, accounts) = used_by(&[("uid-a", "m1")]).await;
        let refused = forget(&member, "m1", "uid-b", false).await.unwrap_err().to_string();
        assert!(
            refused.ends_with("does not use the account karmada-cluster/bulkhead of the member; these do: uid-a as m1")
        );
        let refused = forget(&member, "m2", "uid-a", false).await.unwrap_err().to_string();
        assert!(
            refused.starts_with("control plane uid-a knows the cluster as m1; bulkhead unjoin m1"),
            "{refused}"
        );
        assert!(accounts.get_opt(ACCOUNT).await.unwrap().is_some());
    }
}
