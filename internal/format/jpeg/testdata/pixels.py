"""pixels.py: writes the pictures of this folder, and the checksums of what TensorFlow 2.21 decodes.

Needs tensorflow-cpu 2.21 and pillow 12.
"""

import io
import os
import pathlib
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import PIL.Image
import tensorflow as tf

HERE = pathlib.Path(__file__).parent


def hills(height, width, channels=3):
    """A picture with slopes, edges and noise."""
    y, x = np.mgrid[:height, :width]
    noise = np.random.RandomState(1).randint(0, 24, (height, width))
    parts = [x * 3 + y, (x // 5 + y // 7) % 2 * 160 + 40, x * y // 16 + noise, 255 - x * 2]
    return np.stack(parts[:channels], -1).astype(np.uint8)


def by_tensorflow(picture, **options):
    return tf.io.encode_jpeg(picture, **options).numpy()


def by_pillow(picture, **options):
    out = io.BytesIO()
    mode = "CMYK" if picture.shape[-1] == 4 else "RGB"
    size = picture.shape[1], picture.shape[0]
    PIL.Image.frombytes(mode, size, picture.tobytes()).save(out, "JPEG", **options)
    return out.getvalue()


PICTURES = {
    "halved": by_tensorflow(hills(37, 51), quality=90),
    "full": by_tensorflow(hills(37, 51), quality=40, chroma_downsampling=False),
    "progressive": by_tensorflow(hills(40, 19), quality=75, progressive=True),
    "gray": by_tensorflow(hills(9, 33, 1)),
    "tiny": by_tensorflow(hills(1, 1)),
    "restarts": by_pillow(hills(21, 45), subsampling=1, restart_marker_blocks=2),
    "wide": by_pillow(hills(18, 70), subsampling=1, progressive=True, quality=95),
    "inks": by_pillow(hills(20, 24, 4), quality=80),
    "rgb": by_pillow(hills(17, 19), keep_rgb=True),
}


def main():
    lines = []
    for name, data in PICTURES.items():
        (HERE / f"{name}.jpg").write_bytes(data)
        for options in np.ndindex(2, 4, 2, 2, 3):
            channels, ratio = (1, 3)[options[0]], 1 << options[1]
            smooth, fast = map(bool, options[2:4])
            flags = {
                "channels": channels,
                "ratio": ratio,
                "fancy_upscaling": smooth,
                "dct_method": "INTEGER_FAST" if fast else "INTEGER_ACCURATE",
            }
            left, width = ((0, 0), (17 // ratio, 20 // ratio), (2, 1))[options[4]]
            height = -(-int(tf.io.extract_jpeg_shape(data)[0]) // ratio)
            try:
                if width:
                    window = [0, left, height, width]
                    pixels = tf.io.decode_and_crop_jpeg(data, window, **flags).numpy()
                else:
                    pixels = tf.io.decode_jpeg(data, **flags).numpy()
                result = f"{len(pixels)}x{len(pixels[0])}:{zlib.crc32(pixels.tobytes()):08x}"
            except tf.errors.InvalidArgumentError:
                result = "error"
            flags = f"{smooth} {fast}".lower()
            lines.append(f"{name} {channels} {ratio} {flags} {left} {width} {result}\n")
    (HERE / "pixels").write_text("".join(lines))


if __name__ == "__main__":
    main()
