"""The commonest function words of languages, as `search_words.folded` has them: they show the language of a text.

Half of the languages have a stemmer; the others are there so that a text in them is not taken for a related one.
"""

from __future__ import annotations

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
