//! What a character is, by the tables of the Unicode Consortium.

use icu_properties::props::{
    BidiClass, DefaultIgnorableCodePoint, GeneralCategory as Category,
    GraphemeClusterBreak as Cluster,
};
use icu_properties::{CodePointMapData, CodePointSetData};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::compose;
use unicode_script::{Script, UnicodeScript as _};

/// What a terminal does with a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Shows it, in its place.
    Alone,
    /// Puts it on the character before it, which should be of the same script.
    Mark,
    /// Shows nothing, moves others, or shows what another character looks like exactly.
    Hidden,
}

pub(super) fn kind(c: char) -> Kind {
    if c.is_ascii() {
        return match c {
            ' '..='~' => Kind::Alone,
            _ => Kind::Hidden,
        };
    }
    if !is_visible(c) || goes_left(c) || !c.nfc().eq([c]) {
        return Kind::Hidden;
    }
    match CodePointMapData::<Cluster>::new().get(c) {
        Cluster::Other | Cluster::LV | Cluster::LVT => Kind::Alone,
        Cluster::Extend | Cluster::SpacingMark if has_script(c) => Kind::Mark,
        // Halves of a picture or a syllable, and marks that any character may carry.
        _ => Kind::Hidden,
    }
}

/// Whether `mark` is shown on `last`: of one script, and not another way to write a character that there is.
pub(super) fn carries(last: char, mark: char) -> bool {
    last.script() == mark.script() && compose(last, mark).is_none()
}

/// The script of a letter; none of what all scripts share.
pub(crate) fn script(c: char) -> Option<&'static str> {
    has_script(c).then(|| c.script().full_name())
}

fn has_script(c: char) -> bool {
    !matches!(
        c.script(),
        Script::Common | Script::Inherited | Script::Unknown
    )
}

fn is_visible(c: char) -> bool {
    match c {
        // Blank, though the tables have them as letters and symbols: the braille pattern without dots, fillers, and
        // what stands for an object that is not there.
        '\u{2800}' | '\u{fffc}' | '\u{13441}' | '\u{13442}' | '\u{16fe4}' | '\u{1d159}' => {
            return false;
        }
        _ => {}
    }
    let category = match CodePointMapData::<Category>::new().get(c) {
        Category::UppercaseLetter
        | Category::LowercaseLetter
        | Category::TitlecaseLetter
        | Category::ModifierLetter
        | Category::OtherLetter
        | Category::NonspacingMark
        | Category::SpacingMark
        | Category::DecimalNumber
        | Category::LetterNumber
        | Category::OtherNumber
        | Category::DashPunctuation
        | Category::OpenPunctuation
        | Category::ClosePunctuation
        | Category::ConnectorPunctuation
        | Category::InitialPunctuation
        | Category::FinalPunctuation
        | Category::OtherPunctuation
        | Category::MathSymbol
        | Category::CurrencySymbol
        | Category::ModifierSymbol
        | Category::OtherSymbol => true,
        Category::Unassigned
        | Category::EnclosingMark
        | Category::SpaceSeparator
        | Category::LineSeparator
        | Category::ParagraphSeparator
        | Category::Control
        | Category::Format
        | Category::PrivateUse
        | Category::Surrogate => false,
    };
    category && !CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// Written from right to left, or so placed.
fn goes_left(c: char) -> bool {
    let class = CodePointMapData::<BidiClass>::new().get(c);
    class == BidiClass::RightToLeft
        || class == BidiClass::ArabicLetter
        || class == BidiClass::ArabicNumber
}
