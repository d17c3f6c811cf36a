/**
 * The decoder of LZMA, in which the page carries its module: browsers decompress gzip themselves, but that takes a third more
 * bytes. It reads the format `.lzma`, a header of 13 bytes and one stream:
 *
 * ```text
 *  0       properties: (pb * 5 + lp) * 9 + lc
 *  1..5    size of the window in bytes, little-endian
 *  5..13   size of the content in bytes, little-endian
 *  13..    the stream of the range coder
 * ```
 *
 * It follows the specification of LZMA by Igor Pavlov (`DOC/lzma-specification.txt` of the LZMA SDK). The content is decoded
 * into one array, so that the window is the array itself.
 */

/** Length of the header in bytes. */
const headerBytes = 13;

/** Number of states: each says of which kinds the last symbols were. */
const states = 12;
/** Largest number of low bits of a position that choose a probability: 4. */
const positions = 1 << 4;
/** Number of low bits of a distance that are coded with probabilities of their own. */
const alignBits = 4;
/** Symbols of lengths: 8 short ones and 8 medium ones for each position, 256 long ones, and two bits that choose. */
const lengthSymbols = 2 + positions * 8 * 2 + 256;
/** Probabilities of the bits of a literal. */
const literalSymbols = 0x300;
const shortestMatch = 2;

const endsTooEarly = "the compressed module ends too early";

/** Where the probabilities of each kind begin in one table. */
const isMatchAt = 0;
const isRepeatAt = isMatchAt + states * positions;
const isOtherThanFirstAt = isRepeatAt + states;
const isOtherThanSecondAt = isOtherThanFirstAt + states;
const isFourthAt = isOtherThanSecondAt + states;
const isLongAt = isFourthAt + states;
const slotAt = isLongAt + states * positions;
const middleAt = slotAt + 4 * 64;
const alignAt = middleAt + 128;
const lengthAt = alignAt + (1 << alignBits);
const repeatLengthAt = lengthAt + lengthSymbols;
const literalAt = repeatLengthAt + lengthSymbols;

/** The range coder: it reads bits, each with a probability that it adapts. */
class BitReader {
  /** The range and the code. An array keeps them as 32 bits without a sign, which no number of a field does. */
  private readonly registers = new Uint32Array([0xffffffff, 0]);
  private readonly chances: Uint16Array;

  constructor(
    private readonly input: Uint8Array,
    private at: number,
    chances: number,
  ) {
    this.chances = new Uint16Array(chances).fill(1 << 10);
    // The first byte is always 0.
    for (let count = 0; count < 5; count += 1) this.registers[1] = (this.registers[1]! << 8) | this.next();
  }

  private next(): number {
    if (this.at >= this.input.length) throw new Error(endsTooEarly);
    return this.input[this.at++]!;
  }

  private normalise(): void {
    const registers = this.registers;
    if (registers[0]! < 0x1000000) {
      registers[0] = registers[0]! << 8;
      registers[1] = (registers[1]! << 8) | this.next();
    }
  }

  /** Reads a bit with the probability at this place. */
  bit(place: number): number {
    const { registers, chances } = this;
    const chance = chances[place]!;
    const bound = Math.imul(registers[0]! >>> 11, chance) >>> 0;
    let bit = 0;
    if (registers[1]! < bound) {
      registers[0] = bound;
      chances[place] = chance + ((2048 - chance) >> 5);
    } else {
      registers[0] = registers[0]! - bound;
      registers[1] = registers[1]! - bound;
      chances[place] = chance - (chance >> 5);
      bit = 1;
    }
    this.normalise();
    return bit;
  }

  /** Reads bits that are as often 0 as 1, the highest first. */
  direct(count: number): number {
    const registers = this.registers;
    let value = 0;
    for (let bit = 0; bit < count; bit += 1) {
      registers[0] = registers[0]! >>> 1;
      const isOne = registers[1]! >= registers[0]!;
      if (isOne) registers[1] = registers[1]! - registers[0]!;
      value = (value << 1) | (isOne ? 1 : 0);
      this.normalise();
    }
    return value;
  }

  /** Reads a number of `bits` bits, the highest first. */
  tree(place: number, bits: number): number {
    let symbol = 1;
    for (let bit = 0; bit < bits; bit += 1) symbol = (symbol << 1) | this.bit(place + symbol);
    return symbol - (1 << bits);
  }

  /** Reads a number of `bits` bits, the lowest first. */
  reverseTree(place: number, bits: number): number {
    let [symbol, value] = [1, 0];
    for (let bit = 0; bit < bits; bit += 1) {
      const read = this.bit(place + symbol);
      symbol = (symbol << 1) | read;
      value |= read << bit;
    }
    return value;
  }

  /** Reads the length of a match. */
  length(place: number, position: number): number {
    const mediumAt = 2 + positions * 8;
    if (!this.bit(place)) return shortestMatch + this.tree(place + 2 + position * 8, 3);
    if (!this.bit(place + 1)) return shortestMatch + 8 + this.tree(place + mediumAt + position * 8, 3);
    return shortestMatch + 16 + this.tree(place + mediumAt + positions * 8, 8);
  }

  /** Reads the distance of a match of this length, less 1. */
  distance(length: number): number {
    const slot = this.tree(slotAt + Math.min(length - shortestMatch, 3) * 64, 6);
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1;
    const start = (2 | (slot & 1)) << bits;
    if (slot < 14) return start + this.reverseTree(middleAt + start - slot, bits);
    const high = this.direct(bits - alignBits) << alignBits;
    return start + high + this.reverseTree(alignAt, alignBits);
  }
}

/** Returns the content of a file in the format `.lzma` whose header states its size. */
export function unpackLzma(packed: Uint8Array): Uint8Array<ArrayBuffer> {
  if (packed.length < headerBytes) throw new Error(endsTooEarly);
  const header = new DataView(packed.buffer, packed.byteOffset, headerBytes);
  const properties = header.getUint8(0);
  const [lc, lp, pb] = [properties % 9, Math.floor(properties / 9) % 5, Math.floor(properties / 45)];
  const output = new Uint8Array(Number(header.getBigUint64(5, true)));
  const reader = new BitReader(packed, headerBytes, literalAt + (literalSymbols << (lc + lp)));
  decode(reader, output, lc, (1 << lp) - 1, (1 << pb) - 1);
  return output;
}

function decode(reader: BitReader, output: Uint8Array, lc: number, lpMask: number, pbMask: number): void {
  let [state, first, second, third, fourth] = [0, 0, 0, 0, 0];
  for (let at = 0; at < output.length; ) {
    const position = at & pbMask;
    if (!reader.bit(isMatchAt + state * positions + position)) {
      const before = at > 0 ? output[at - 1]! : 0;
      const place = literalAt + literalSymbols * (((at & lpMask) << lc) + (before >> (8 - lc)));
      let symbol = 1;
      if (state >= 7) {
        let matched = output[at - first - 1]!;
        do {
          const wanted = (matched >> 7) & 1;
          matched <<= 1;
          const bit = reader.bit(place + ((1 + wanted) << 8) + symbol);
          symbol = (symbol << 1) | bit;
          if (bit !== wanted) break;
        } while (symbol < 0x100);
      }
      while (symbol < 0x100) symbol = (symbol << 1) | reader.bit(place + symbol);
      output[at++] = symbol;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let length;
    if (!reader.bit(isRepeatAt + state)) {
      [fourth, third, second] = [third, second, first];
      length = reader.length(lengthAt, position);
      first = reader.distance(length);
      state = state < 7 ? 7 : 10;
    } else if (!reader.bit(isOtherThanFirstAt + state)) {
      if (reader.bit(isLongAt + state * positions + position)) {
        length = reader.length(repeatLengthAt, position);
        state = state < 7 ? 8 : 11;
      } else {
        length = 1;
        state = state < 7 ? 9 : 11;
      }
    } else {
      if (!reader.bit(isOtherThanSecondAt + state)) [first, second] = [second, first];
      else if (!reader.bit(isFourthAt + state)) [first, second, third] = [third, first, second];
      else [first, second, third, fourth] = [fourth, first, second, third];
      length = reader.length(repeatLengthAt, position);
      state = state < 7 ? 8 : 11;
    }
    if (first >= at || length > output.length - at) throw new Error("the compressed module is damaged");
    for (const end = at + length; at < end; at += 1) output[at] = output[at - first - 1]!;
  }
}
