//! Numbers and links of a text in words, for a voice. Pure.

use crate::model::Language;

/// The largest number that is said in words; larger ones are left to the voice.
const LARGEST: usize = 999_999;

/// What may stand around a number or a link.
const AROUND: &[char] =
    &['(', ')', '[', ']', '"', '\'', '„', '“', '”', '«', '»', '.', ',', ';', ':', '!', '?', '¿', '¡'];

/// A text without Markdown, to be spoken in this language: whole and decimal numbers are words in English, German and Spanish, and a link
/// is the name of its host. Times, dates, versions and codes stay as they are.
pub fn in_words(text: &str, language: Option<Language>) -> String {
    let tongue = Tongue::of(language.unwrap_or(Language::ENGLISH));
    let mut words = String::with_capacity(text.len());
    for piece in text.split_inclusive(char::is_whitespace) {
        let token = piece.trim_matches(|letter: char| letter.is_whitespace() || AROUND.contains(&letter));
        let at = piece.find(token).unwrap_or_default();
        let (before, after) = (&piece[..at], &piece[at + token.len()..]);
        let said = host(token).map(ToOwned::to_owned).or_else(|| tongue.as_ref()?.number(token, after));
        match said {
            Some(said) => words.extend([before, said.as_str(), after]),
            None => words.push_str(piece),
        }
    }
    words
}

/// The host of a link.
fn host(token: &str) -> Option<&str> {
    let rest = token.strip_prefix("https://").or_else(|| token.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.split(':').next()?;
    Some(host.strip_prefix("www.").unwrap_or(host)).filter(|host| !host.is_empty())
}

/// How numbers are said in a language.
struct Tongue {
    minus: &'static str,
    point: &'static str,
    percent: &'static str,
    /// What separates the fraction of a written number, and its thousands.
    marks: (char, char),
    /// Whether the word for 1 depends on what is counted, and a full stop makes a number an ordinal.
    is_inflected: bool,
    say: fn(usize) -> String,
}

impl Tongue {
    fn of(language: Language) -> Option<Self> {
        Some(match language.as_str() {
            "en" => Self {
                minus: "minus",
                point: "point",
                percent: "percent",
                marks: ('.', ','),
                is_inflected: false,
                say: english,
            },
            "de" => Self {
                minus: "minus",
                point: "Komma",
                percent: "Prozent",
                marks: (',', '.'),
                is_inflected: true,
                say: german,
            },
            "es" => Self {
                minus: "menos",
                point: "coma",
                percent: "por ciento",
                marks: (',', '.'),
                is_inflected: true,
                say: spanish,
            },
            _ => return None,
        })
    }

    /// A number, which `after` follows in the text. `None` if the token is something else.
    fn number(&self, token: &str, after: &str) -> Option<String> {
        let (sign, rest) = token.strip_prefix(['-', '−']).map_or(("", token), |rest| (self.minus, rest));
        let (rest, percent) = rest.strip_suffix('%').map_or((rest, ""), |rest| (rest, self.percent));
        let (whole, fraction) = rest.split_once(self.marks.0).map_or((rest, None), |(whole, rest)| (whole, Some(rest)));
        let value = self.whole(whole)?;
        let is_alone = sign.is_empty() && percent.is_empty() && fraction.is_none();
        let is_ordinal = after.starts_with('.') && after.ends_with(' ');
        if self.is_inflected && is_alone && (value == 1 || is_ordinal) {
            return None;
        }
        let mut said = vec![sign.to_owned(), (self.say)(value)];
        if let Some(fraction) = fraction {
            said.push(self.point.to_owned());
            for digit in fraction.chars() {
                said.push((self.say)(digit.to_digit(10)? as usize));
            }
            if fraction.is_empty() {
                return None;
            }
        }
        said.push(percent.to_owned());
        said.retain(|word| !word.is_empty());
        Some(said.join(" "))
    }

    /// Digits, in groups of three or in one.
    fn whole(&self, digits: &str) -> Option<usize> {
        let mut groups = digits.split(self.marks.1);
        let first = groups.next()?;
        let is_code = first.len() > 1 && first.starts_with('0');
        let mut joined = first.to_owned();
        for group in groups {
            if group.len() != 3 || first.len() > 3 {
                return None;
            }
            joined.push_str(group);
        }
        let is_number = !is_code && !first.is_empty() && joined.bytes().all(|byte| byte.is_ascii_digit());
        joined.parse().ok().filter(|value| is_number && *value <= LARGEST)
    }
}

fn with_rest(said: String, between: &str, rest: usize, say: fn(usize) -> String) -> String {
    if rest == 0 { said } else { format!("{said}{between}{}", say(rest)) }
}

fn english(number: usize) -> String {
    const FIRST: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    match number {
        0..20 => FIRST[number].to_owned(),
        20..100 => with_rest(TENS[number / 10].to_owned(), "-", number % 10, english),
        100..1000 => with_rest(format!("{} hundred", english(number / 100)), " ", number % 100, english),
        _ => with_rest(format!("{} thousand", english(number / 1000)), " ", number % 1000, english),
    }
}

fn german(number: usize) -> String {
    const FIRST: [&str; 20] = [
        "null",
        "ein",
        "zwei",
        "drei",
        "vier",
        "fünf",
        "sechs",
        "sieben",
        "acht",
        "neun",
        "zehn",
        "elf",
        "zwölf",
        "dreizehn",
        "vierzehn",
        "fünfzehn",
        "sechzehn",
        "siebzehn",
        "achtzehn",
        "neunzehn",
    ];
    const TENS: [&str; 10] =
        ["", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"];
    match number {
        1 => "eins".to_owned(),
        0..20 => FIRST[number].to_owned(),
        20..100 if number.is_multiple_of(10) => TENS[number / 10].to_owned(),
        20..100 => format!("{}und{}", FIRST[number % 10], TENS[number / 10]),
        100..1000 => with_rest(format!("{}hundert", FIRST[number / 100]), "", number % 100, german),
        _ => {
            let thousands = german(number / 1000);
            let thousands = match thousands.strip_suffix("eins") {
                Some(before) => format!("{before}ein"),
                None => thousands,
            };
            with_rest(format!("{thousands}tausend"), "", number % 1000, german)
        }
    }
}

fn spanish(number: usize) -> String {
    const FIRST: [&str; 30] = [
        "cero",
        "uno",
        "dos",
        "tres",
        "cuatro",
        "cinco",
        "seis",
        "siete",
        "ocho",
        "nueve",
        "diez",
        "once",
        "doce",
        "trece",
        "catorce",
        "quince",
        "dieciséis",
        "diecisiete",
        "dieciocho",
        "diecinueve",
        "veinte",
        "veintiuno",
        "veintidós",
        "veintitrés",
        "veinticuatro",
        "veinticinco",
        "veintiséis",
        "veintisiete",
        "veintiocho",
        "veintinueve",
    ];
    const TENS: [&str; 10] =
        ["", "", "", "treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa"];
    const HUNDREDS: [&str; 10] = [
        "",
        "ciento",
        "doscientos",
        "trescientos",
        "cuatrocientos",
        "quinientos",
        "seiscientos",
        "setecientos",
        "ochocientos",
        "novecientos",
    ];
    match number {
        0..30 => FIRST[number].to_owned(),
        30..100 => with_rest(TENS[number / 10].to_owned(), " y ", number % 10, spanish),
        100 => "cien".to_owned(),
        101..1000 => with_rest(HUNDREDS[number / 100].to_owned(), " ", number % 100, spanish),
        1000..2000 => with_rest("mil".to_owned(), " ", number % 1000, spanish),
        _ => {
            let thousands = spanish(number / 1000);
            let thousands = match thousands.strip_suffix("uno") {
                Some(before) if before.ends_with("veinti") => format!("{before}ún"),
                Some(before) => format!("{before}un"),
                None => thousands,
            };
            with_rest(format!("{thousands} mil"), " ", number % 1000, spanish)
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("en", "It has 21 rooms, 3.5 of them free.", "It has twenty-one rooms, three point five of them free.")]
    #[case(
        "en",
        "1,234 of 999999 (-4%)",
        "one thousand two hundred thirty-four of \
        nine hundred ninety-nine thousand nine hundred ninety-nine (minus four percent)"
    )]
    #[case("en", "1. milk\n2. bread", "one. milk\ntwo. bread")]
    #[case("en", "See https://www.example.org:8080/a?b=1.", "See example.org.")]
    #[case(
        "en",
        "At 14:30 on 2026-11-30, v2, 007, 1.2.3, 1000000, $5",
        "At 14:30 on 2026-11-30, v2, 007, 1.2.3, 1000000, $5"
    )]
    #[case("de", "21 von 1.101 sind 1,5 %", "einundzwanzig von eintausendeinhunderteins sind eins Komma fünf %")]
    #[case("de", "Am 3. Mai kommt 1 Brief, es sind 17.", "Am 3. Mai kommt 1 Brief, es sind siebzehn.")]
    #[case("de", "121000", "einhunderteinundzwanzigtausend")]
    #[case("de", "101000", "einhunderteintausend")]
    #[case("es", "31 y 100 y 21.000", "treinta y uno y cien y veintiún mil")]
    #[case("es", "515%", "quinientos quince por ciento")]
    #[case("fr", "21 sur https://example.org/a", "21 sur example.org")]
    #[case("en", "", "")]
    #[case("en", " \n ... ", " \n ... ")]
    fn a_voice_says_numbers_and_links_in_words(#[case] language: &str, #[case] text: &str, #[case] words: &str) {
        assert_eq!(in_words(text, Language::of(language)), words);
    }
}
