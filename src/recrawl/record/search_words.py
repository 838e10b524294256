"""The words of pages and queries as the index has them: folded, in letter pairs where no spaces are, and stems.

A text becomes terms with spaces between them, which tantivy's analyzers only split. Words are in lower case, in one
width, and without the marks that readers leave out (Greek accents, Arabic and Hebrew vowels; tantivy folds Latin
letters). Scripts without spaces, and Korean, become overlapping pairs of letters: a query is found as a phrase of
pairs wherever it stands in a text, without a dictionary. The words' stems, by the language of the page, are a field of
their own; a query's words are looked up there for every language of the index.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import cache
from heapq import nlargest
from itertools import chain
from operator import add

import tantivy

from recrawl.words import PAIRED, letter_runs, plain_words, without_signs, without_soft, words

# --------------------------------------------------------------------------------------------------------------------
# The commonest function words of languages, as `search_words.folded` has them: they show the language of a text.
#
# Half of the languages have a stemmer; the others are there so that a text in them is not taken for a related one.


FUNCTION_WORDS = {
    "af": "die en van het is nie dit in wat vir hulle aan met ons om sy word daar deur ook baie maar sal as",
    "ar": "في من على الى ان هذا هذه التی الذی عن مع لا ما کان او ثم قد کل بعد ذلک علی الی غیر",
    "bg": "и на за се от да не със като по са че това във ще при до или което към",
    "ca": "de la que el i en les per amb els del una dels al és no més com són aquest aquesta també però a",
    "cs": "a je se na že s z do to v pro jako nebo ale by si jsou které který bude od při jeho také",
    "da": "og i at er en den til på det de af for med ikke der har et fra som jeg blev være hvad kun efter også eller",
    "de": "der die das und ist nicht ein eine mit von zu auf für den dem sich im auch es werden wird als bei oder sind",
    "el": "και το να του της η των την στο με που για από ειναι δεν τα οι σε ο τη στην απο θα τον",
    "en": "the of and to is in that it for was on are with as at be this have from or by not you which we an they",
    "es": "de la que el en y los del las por con una para es se al lo como más su pero no un este está sus",
    "et": "ja on ei et see kui ka oma mis ta seda aga nii või kes mida ning olema oli",
    "fa": "و در به از که این را با است برای ان یک تا بر می شود خود های کرد شده هم",
    "fi": "ja on ei että se hän oli ovat mutta kun niin kuin tai myös joka sen ole ollut mitä voi jos tämä ovat sekä",
    "fr": "de la le et les des en un une du est que dans pour qui par sur pas au avec ce il sont plus vous ou",
    "hr": "i je u na se da su za od s što ne kao koji ili bi će koje to ako sve",
    "hu": "a az és hogy nem is egy ez meg van azt csak de ha már vagy mint volt fel ki még kell",
    "id": "yang dan di dengan untuk ini dari tidak dalam pada itu adalah akan atau anda juga ke bisa oleh",
    "it": "di e il la che in un è per una del non con le si da dei della sono al gli nel alla più anche come",
    "lt": "ir yra kad su iš tai į bet ar kaip buvo jis nuo tik taip prie dėl už",
    "lv": "un ir no ar par ka uz lai tas kas nav pie vai bet kā tiek var šo",
    "nl": "de het een van en in is dat op te voor met zijn niet aan er om ook als bij dan naar uit door maar wordt",
    "no": "og i er det som en på til av at for med ikke den har de et fra om vi han kan seg men var eller etter",
    "pl": "i w na z nie się do że to jest jak po co o od dla ale czy przez za są tak jego które",
    "pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como ao das foi são você",
    "ro": "de și în la a cu pe nu un o este că din pentru care mai se sunt sau au fi ce prin fost acest",
    "ru": "и в не на что с по это как а но он из у за от для так же то все к или его вы был",
    "sk": "a je na sa že s v do to z pre ako alebo ale by si sú ktoré ktorý bude od pri jeho aj",
    "sl": "in je v na se za da so z ki tudi po ali od pri kot pa ne še bi",
    "sv": "och i att det som en på är av för med den till inte om ett har de jag var från kan så men eller vid",
    "ta": "மற்றும் ஒரு இந்த என்று என்ற உள்ள இது அந்த வேண்டும் அல்லது இல்லை என மேலும் பற்றி போது",
    "tr": "ve bir bu için ile da de olarak daha çok gibi olan ne kadar ama değil her mi veya sonra en o ya",
    "uk": "і в не на що з у це як та до за від для але або його є про так все був",
    "ur": "کے کا کی میں ہے اور سے کو یہ نے پر ہیں کہ ایک اس نہیں بھی تھا جو",
    "vi": "và của là có trong cho không được các với một người để này những khi đã từ",
}
"""By language tag."""


# --------------------------------------------------------------------------------------------------------------------


WORDS = "recrawl-words-1"
"""The name of the analyzer in an index: another number for other terms, so that older indexes are made anew."""
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
"""tantivy's stemmers, by language."""
_SAME = {"nb": "no", "nn": "no"}
_COMPOUNDING = frozenset(("da", "de", "fi", "hu", "nl", "no", "sv"))
"""Languages that write compounds as one word."""
_COMPOUND = 9
"""Letters of the shortest stem that is taken for a compound."""
_HEAD = 5
"""Letters of the shortest query that is looked for at the end of compounds."""
_SPELLINGS = {
    "de": (("ae", "ä"), ("oe", "ö"), ("ue", "ü")),
    "da": (("aa", "å"), ("oe", "ø"), ("ae", "æ")),
    "no": (("aa", "å"), ("oe", "ø"), ("ae", "æ")),
}
"""How letters are written where a keyboard lacks them."""
_LONGEST = 100
"""Bytes of the longest word in an index."""
_ENOUGH = 10
"""Different function words that confirm a stated language."""
_FEW = 3
"""Function words that contradict a stated language, at least."""
_CLEAR = 0.5
"""A stated language stands if its function words are at least this part of those of the best one."""
_FOREIGN = 7
"""Different function words of another language from which a text is read sentence by sentence."""
_SENTENCE_END = re.compile(r"[.!?\n]\s+")
_READ, _SAMPLED, _SAMPLE, _LEAST_SAMPLE = 20_000, 5, 600, 40
"""Characters of a text in which its longest sentences are sought; how many, and of how many characters, are read."""
_TAGS = {
    "afr": "af", "aka": "ak", "amh": "am", "ara": "ar", "aze": "az", "bel": "be", "ben": "bn", "bul": "bg",
    "cat": "ca", "ces": "cs", "cmn": "zh", "cym": "cy", "dan": "da", "deu": "de", "ell": "el", "eng": "en",
    "epo": "eo", "est": "et", "fin": "fi", "fra": "fr", "guj": "gu", "heb": "he", "hin": "hi", "hrv": "hr",
    "hun": "hu", "hye": "hy", "ind": "id", "ita": "it", "jav": "jv", "jpn": "ja", "kan": "kn", "kat": "ka",
    "khm": "km", "kor": "ko", "lao": "lo", "lat": "la", "lav": "lv", "lit": "lt", "mal": "ml", "mar": "mr",
    "mkd": "mk", "mya": "my", "nep": "ne", "nld": "nl", "nob": "no", "ori": "or", "pan": "pa", "pes": "fa",
    "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "sin": "si", "slk": "sk", "slv": "sl", "sna": "sn",
    "spa": "es", "srp": "sr", "swe": "sv", "tam": "ta", "tel": "te", "tgl": "tl", "tha": "th", "tuk": "tk",
    "tur": "tr", "ukr": "uk", "urd": "ur", "uzb": "uz", "vie": "vi", "yid": "yi", "zul": "zu",
}  # fmt: skip
"""Language tags of the languages that turbohtml tells apart."""
_KNOWN_STEMS = 100_000
_FIRST_MARKED = "\u0900"
"""From here on, the letters of a stemmed language have marks; elsewhere, what is not all letters has no stem."""
_FIRST_PAIR = "\u0e01"
"""From here on, scripts have no stems: terms of Chinese, Japanese, Korean, Thai and others are pairs of letters."""
_GREEK, _ARABIC = range(0x370, 0x400), range(0x600, 0x700)
_ELSEWHERE = re.compile(f"[^\0-\u024f\u0400-\u04ff\u1e00-\u1eff\u2000-\u2fff{PAIRED}]+")
"""What is neither Latin nor Cyrillic, nor a sign of all scripts, nor a letter of which pairs are made."""
_PAIRED = re.compile(f"[{PAIRED}]+")
_PIECE = re.compile(r".{1000}[^ ]*+|.+", re.DOTALL)
"""A part of a text that ends at a space: what terms are made of never reaches over one."""
_WIDTHS = re.compile("[\uf900-\ufaff\uff00-\uffef\u3000\u3131-\u318e\u3200-\u33ff\U0002f800-\U0002fa1f]+")
"""Other forms of Chinese, Japanese and Korean letters and signs: wide and narrow ones, letters in circles."""
_COMBINING = re.compile("[\u0300-\u036f\u3099\u309a\u1100-\u11ff]")
_DROPPED = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]"
)
"""Marks that readers leave out."""
_ALIKE = dict(zip("أإآٱىيؤةךםןףץς", "ااااییوهכמנפצσ", strict=True)) | {"ё": "е", "ك": "ک"}
_MARKED = re.compile("[\u0370-\u03ff\u0590-\u06ff\u0451\u1f00-\u1fff\u0300-\u036f]")


def terms(text: str) -> str:
    """The terms of a text in its order, with spaces between them.

    >>> " ".join(terms("Die Häuser, 新しい図書館").split()), " ".join(terms("도서관에서").split())
    ('die häuser 新し しい い図 図書 書館 館', '도서 서관 관에 에서 서')
    """
    text = text.replace("_", " ")
    whole = _plain_terms(text)
    if whole is not None:
        return whole
    # A few letters of other scripts are on every third page: the rest of it need not pay for them.
    return " ".join(
        _mixed_terms(piece) if plain is None else plain
        for piece, plain in ((piece, _plain_terms(piece)) for piece in _PIECE.findall(text))
    )


def _plain_terms(text: str) -> str | None:
    plain = plain_words(text)
    return plain.replace("ё", "е") if plain is not None and "ё" in plain else plain


def _mixed_terms(text: str) -> str:
    text = without_soft(text).replace("İ", "i").lower()
    if _COMBINING.search(text):
        text = unicodedata.normalize("NFC", text)
    text = _PAIRED.sub(_pairs, _WIDTHS.sub(_of_one_width, text))
    return without_signs(_ELSEWHERE.sub(_terms, text.replace("ё", "е")))


def _of_one_width(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", found[0]).lower()


def _pairs(found: re.Match[str]) -> str:
    """The pairs of a run of letters without spaces."""
    letters = found[0]
    return f" {' '.join(map(add, letters, letters[1:]))} {letters[-1]} "


def _terms(found: re.Match[str]) -> str:
    """The terms of a run of other characters; Latin letters may stand beside it."""
    text = folded(found[0])
    made: list[str] = []
    runs = list(letter_runs(text))
    for run, letters in runs:
        if letters is None:
            made.append(run)
        else:
            made += map(add, letters, letters[1:])
            made.append(letters[-1])
    if not runs:
        return " "
    (first, pairs), (last, other_pairs) = runs[0], runs[-1]
    before = "" if pairs is None and text.startswith(first) else " "
    after = "" if other_pairs is None and text.endswith(last) else " "
    return f"{before}{' '.join(made)}{after}"


def folded(text: str) -> str:
    """A text in lower case and in one width, without marks that readers leave out.

    >>> folded("İSTANBUL ＡＢＣ ｶﾅ Ελλάδα كِتَاب Ёлка")
    'istanbul abc カナ ελλαδα کتاب елка'
    """
    if text.isascii():
        return text.lower()
    text = without_soft(text).replace("İ", "i").lower()
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text).lower()
    return text.translate(_FOLDS) if _MARKED.search(text) else text


class _Folds(dict[int, str]):
    """The folded forms of letters, for `str.translate`: each is worked out when it first occurs."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        if code in _GREEK or 0x1F00 <= code < 0x2000:
            letter = unicodedata.normalize("NFD", letter)
            letter = unicodedata.normalize("NFC", _DROPPED.sub("", letter))
        elif _DROPPED.match(letter):
            letter = ""
        elif code in _ARABIC and letter.isdecimal():
            letter = str(unicodedata.decimal(letter))
        self[code] = letter = _ALIKE.get(letter, letter)
        return letter


_FOLDS = _Folds()


def language_of(stated: str, found: Set[str]) -> str:
    """The language by which a text with these function words is stemmed: the stated one, unless they contradict it.

    Empty for a language without stemmer.

    >>> language_of("en-us", {"das", "ist", "nicht", "die", "frage"}), language_of("", {"2026"})
    ('de', '')
    """
    tag = stated.partition("-")[0]
    tag = _SAME.get(tag, tag)
    if len(_words_of(tag) & found) >= _ENOUGH:
        return tag if tag in STEMMERS else ""
    votes = _votes(found)
    if votes:
        best = max(sorted(votes), key=votes.__getitem__)  # of equals always the same one
        most = votes[best]
        if most >= _FEW and votes[tag] < _CLEAR * most:
            tag = best
    return tag if tag in STEMMERS else ""


def _votes(found: Set[str]) -> Counter[str]:
    """For each language, how many of its function words are among these."""
    speakers = _speakers()
    return Counter(chain.from_iterable(map(speakers.__getitem__, _FUNCTION_WORDS & found)))


def words_by_language(stated: str, text: str, words: Sequence[str]) -> dict[str, Iterable[str]]:
    """The words of a text by the language by which they are stemmed; if it is in several, sentence by sentence.

    `words` are all of them, in any order. Those of a language without stemmer are left out.

    >>> text = "The house of the city is not for us. " + "Das ist nicht die Frage, und der Rest ist für uns."
    >>> {tag: len(set(own)) for tag, own in words_by_language("en", text, terms(text).split()).items()}
    {'en': 8, 'de': 10}
    """
    found = _FUNCTION_WORDS.intersection(words)
    spoken = language_of(stated, found)
    known = _words_of(spoken)
    others = (other for other, count in _votes(found).items() if count >= _FOREIGN and other != spoken)
    if not any(len((_words_of(other) - known) & found) >= _FOREIGN for other in others):
        return {spoken: words} if spoken else {}
    by_language: dict[str, set[str]] = {}
    for sentence in _SENTENCE_END.split(text):
        own = set(terms(sentence).split())
        spoken = language_of(spoken, own)
        by_language.setdefault(spoken, set()).update(own)
    by_language.pop("", None)
    return dict(by_language)


def detected(text: str) -> str:
    """The language that the letters of a text show; empty if they show none.

    >>> detected("Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv.")
    'cs'
    """
    sample = "\n".join(nlargest(_SAMPLED, _SENTENCE_END.split(text[:_READ]), key=len))[:_SAMPLE]
    if len(sample) < _LEAST_SAMPLE:
        return ""
    from turbohtml.detect import detect_language  # lazy: searches do not need it

    return _TAGS.get(detect_language(sample).language or "", "")


_FUNCTION_WORDS = frozenset(" ".join(FUNCTION_WORDS.values()).split())


@cache
def _words_of(language: str) -> frozenset[str]:
    """The function words of a language."""
    return frozenset(FUNCTION_WORDS.get(language, "").split())


@cache
def _speakers() -> dict[str, tuple[str, ...]]:
    """The languages of each function word."""
    found: dict[str, tuple[str, ...]] = {}
    for language, spoken in FUNCTION_WORDS.items():
        for word in spoken.split():
            found[word] = (*found.get(word, ()), language)
    return found


class _StemTerms(dict[str, str]):
    """The terms of one language for the field of stems, by word; empty for words that are their own stems."""

    def __init__(self) -> None:
        super().__init__()
        self.missing: set[str] = set()
        """Words that were looked up and have no terms yet."""

    def __missing__(self, word: str) -> str:
        self.missing.add(word)
        return ""


class Stems:
    """The stems of words, which recur: those that were made lately are kept."""

    def __init__(self) -> None:
        self._terms: dict[str, _StemTerms] = {}
        self._analyzers: dict[str, tantivy.TextAnalyzer] = {}

    def of(self, language: str, words: Iterable[str]) -> list[str]:
        """The stem of each word."""
        return list(self._analyzer(language).analyze(" ".join(words)))

    def terms(self, language: str, words: Iterable[str]) -> str:
        """The terms of the field of stems for a page with these words: of those that are not their own stems."""
        if not language:
            return ""
        known = self._terms.setdefault(language, _StemTerms())
        if len(known) > _KNOWN_STEMS:
            known.clear()
        found = set(map(known.__getitem__, words))
        if known.missing:
            missing, known.missing = list(known.missing), set()
            known.update(self._made(language, missing))
            found.update(map(known.__getitem__, missing))
        return f"{language}: {' '.join(filter(None, found))}"

    def _made(self, language: str, words: Sequence[str]) -> dict[str, str]:
        """The terms of words."""
        made = dict.fromkeys(words, "")
        stemmed = [word for word in words if word < _FIRST_PAIR and (word.isalpha() or word > _FIRST_MARKED)]
        if not stemmed:
            return made
        plain = stemmed if all(map(str.isascii, stemmed)) else unaccented(stemmed)
        pairs = zip(plain, self.of(language, stemmed), strict=True)
        if language in _COMPOUNDING:
            terms = [_stem_and_compound(language, *pair) for pair in pairs]
        else:
            start = f"{language}:"
            terms = ["" if word == stem else start + stem for word, stem in pairs]
        made.update(zip(stemmed, terms, strict=True))
        return made

    def query(self, language: str, word: str) -> list[str]:
        """The stems under which pages in a language may have a word of a query: as written, and with its letters."""
        forms = [word]
        for plain, letter in _SPELLINGS.get(language, ()):
            forms += [form.replace(plain, letter) for form in forms if plain in form]
        return list(dict.fromkeys(self.of(language, forms)))

    def _analyzer(self, language: str) -> tantivy.TextAnalyzer:
        if language not in self._analyzers:
            stemmer = tantivy.Filter.stemmer(STEMMERS[language])
            builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).filter(stemmer)
            self._analyzers[language] = builder.filter(tantivy.Filter.ascii_fold()).build()
        return self._analyzers[language]


def _stem_and_compound(language: str, word: str, stem: str) -> str:
    """The terms of one word in the field of stems: its stem if it is another, backwards if it may be a compound."""
    found = "" if stem == word else f"{language}:{stem}"
    return f"{found} {language}<{stem[::-1]}" if len(stem) >= _COMPOUND else found


def compound_prefix(language: str, stem: str) -> str:
    """What the terms of compounds begin with whose last part has this stem; empty if none are looked for."""
    return f"{language}<{stem[::-1]}" if language in _COMPOUNDING and len(stem) >= _HEAD else ""


@cache
def analyzer() -> tantivy.TextAnalyzer:
    """The analyzer of `terms` in an index."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    return builder.filter(tantivy.Filter.remove_long(_LONGEST)).filter(tantivy.Filter.ascii_fold()).build()


@cache
def _letters_folder() -> tantivy.TextAnalyzer:
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).filter(tantivy.Filter.ascii_fold()).build()


def query_words(text: str) -> list[str]:
    """The words of a part of a query, as `quotes` compares them with those of a page.

    >>> query_words("Ｈäuser_liste")
    ['hauser', 'liste']
    """
    return unaccented(words(folded(text.replace("_", " "))))


def unaccented(words: Sequence[str]) -> list[str]:
    """Words without the accents of Latin letters, as an index has them.

    >>> unaccented(["häuser", "tōkyō"])
    ['hauser', 'tokyo']
    """
    return list(_letters_folder().analyze(" ".join(words))) if words else []
