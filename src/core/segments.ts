/** The GSM-7 alphabet (3GPP TS 23.038, section 6.2.1); whatever else a text holds makes the whole of it UCS-2. */
const gsm =
  "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
  "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
/** Characters of the extension table: an escape comes before each. */
const extension = "\f^{}\\[~]|€";

const septets = new Map([...gsm].map((character) => [character, 1]));
for (const character of extension) septets.set(character, 2);

const septetsAlone = 160;
const septetsInSeries = 153;
const unitsAlone = 70;
const unitsInSeries = 67;

/** How many SMS segments a text takes: 160 septets or 70 UTF-16 units in one, 153 or 67 in each of several. */
export function segmentCount(text: string): number {
  const isGsm = isGsmText(text);
  const [alone, inSeries] = isGsm ? [septetsAlone, septetsInSeries] : [unitsAlone, unitsInSeries];
  let total = 0;
  let segments = 1;
  let used = 0;
  for (const character of text) {
    const size = isGsm ? (septets.get(character) ?? 0) : character.length;
    total += size;
    // Neither an escape and its character nor a surrogate pair is torn between two segments.
    if (used + size > inSeries) {
      segments += 1;
      used = 0;
    }
    used += size;
  }
  if (total === 0) return 0;
  return total <= alone ? 1 : segments;
}

function isGsmText(text: string): boolean {
  for (const character of text) if (!septets.has(character)) return false;
  return true;
}
