import { IncomingMessage } from 'node:http';

/** Pieces that any body may come in: its chunks, as the parser hands them on one by one, each some microseconds. */
const bodyPiecesMax = 4_096;
/** Mean bytes of those beyond. The shortest line of a list of devices has more. */
const bodyPieceBytesMin = 8;

/** A request whose connection ends when its body comes in too many small pieces: Node reads 64 KiB of them at once. */
export class BoundedRequest extends IncomingMessage {
  #pieces = 0;
  #bytes = 0;

  override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
    if (piece !== null) {
      this.#pieces += 1;
      this.#bytes += piece.length;
      if (this.#pieces > bodyPiecesMax + this.#bytes / bodyPieceBytesMin) {
        this.socket.destroy();
        return false;
      }
    }
    return super.push(piece, encoding);
  }
}
