//! Problems as pages, for people who open an address in a browser, and as sentences, for a voice.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, header},
    middleware::Next,
    response::Response,
};

use crate::problem::Description;

/// The page has no script, no style and no form, and nothing may embed it.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A middleware: answers a request whose `Accept` names `text/html` with a page in place of a
/// [problem document](crate::Problem). Status and headers stay as they are.
pub async fn problem_pages(request: Request, next: Next) -> Response {
    let is_browser = accepts_html(request.headers());
    let mut response = next.run(request).await;
    let problem = is_browser.then(|| response.extensions_mut().remove::<Description>()).flatten();
    let Some(problem) = problem else { return response };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(page(&problem));
    response
}

/// Makes a [problem document](crate::Problem) one sentence that a voice can say. Status and other headers stay as they are,
/// as do all other responses.
#[must_use]
pub fn problem_in_words(mut response: Response) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Description>() else { return response };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(sentence(&problem.detail.replace('`', "")));
    response
}

/// Programs ask for anything (`*/*`) or for JSON; a browser names HTML when it opens a page.
fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|range| range.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/html")))
}

fn page(problem: &Description) -> String {
    let (title, detail) = (escaped(problem.title), escaped(&sentence(&problem.detail)));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n<p>{detail}</p>\n</main>\n</body>\n</html>\n"
    )
}

/// The detail as a sentence: with a capital letter and a full stop.
fn sentence(detail: &str) -> String {
    let mut chars = detail.trim_end_matches('.').chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => String::new(),
    }
}

/// `text` with HTML's special characters as entities.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    push_escaped(&mut html, text);
    html
}

/// Appends `text` with HTML's special characters as entities.
pub fn push_escaped(html: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true)]
    #[case("application/json, Text/HTML;q=0.5", true)]
    #[case("*/*", false)]
    #[case("application/problem+json", false)]
    #[case("text/htmlx", false)]
    fn a_browser_names_html(#[case] accept: &'static str, #[case] is_browser: bool) {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);

        assert_eq!(accepts_html(&headers), is_browser);
    }

    #[test]
    fn a_page_shows_what_callers_wrote_as_text() {
        let detail = "<script>alert(\"1\")</script> is not a name & never was".into();
        let page = page(&Description { title: "Not found", detail });

        assert!(page.contains("<h1>Not found</h1>"), "{page}");
        assert!(
            page.contains("<p>&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; is not a name &amp; never was.</p>")
        );
    }

    #[test]
    fn a_problem_carries_its_words() {
        let problem = crate::Problem::new(StatusCode::NOT_FOUND, "not-found", "Not found", "there is nothing");
        let response = axum::response::IntoResponse::into_response(problem);

        assert_eq!(
            response.extensions().get::<Description>().map(|problem| &*problem.detail),
            Some("there is nothing")
        );
    }
}
