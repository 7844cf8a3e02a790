//! Lists of all objects of a kind, page by page.

use std::ops::ControlFlow;

use kube::api::{ListParams, ObjectList};

/// Page size of list requests.
const PAGE: u32 = 500;

/// Requests all pages of a list with `list`, and passes the objects of each one to `take`, until that breaks.
///
/// # Errors
///
/// The error of a request. The pages before it were passed.
pub async fn pages<K: Clone>(
    list: impl AsyncFn(&ListParams) -> kube::Result<ObjectList<K>>,
    mut take: impl FnMut(Vec<K>) -> ControlFlow<()>,
) -> kube::Result<()> {
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let found = list(&page).await?;
        if take(found.items).is_break() {
            return Ok(());
        }
        match found.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// Requests all pages of a list, and passes each object to `take`.
///
/// # Errors
///
/// The error of a request. The objects of the pages before it were passed.
pub async fn each<K: Clone>(
    list: impl AsyncFn(&ListParams) -> kube::Result<ObjectList<K>>,
    mut take: impl FnMut(K),
) -> kube::Result<()> {
    let take = |objects: Vec<K>| {
        objects.into_iter().for_each(&mut take);
        ControlFlow::Continue(())
    };
    pages(list, take).await
}
