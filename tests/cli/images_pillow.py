#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images of cltool beside those of Pillow:  images_pillow.py CLTOOL MODEL

MODEL returns its input [n,3,h,w]. Bounds, where pixels go from 0 to 1:

- 1.001 / 255 beside Pillow's 8-bit images, which are rounded after each of the two axes: half a
  level each, and a thousandth of one for weights of 22 bits;
- 1e-6 beside Pillow's float images, which are rounded to float32 there;
- 0 for PNG, BMP and WebP files that are not resized;
- 4 / 255 for JPEG files: without libjpeg, inverse DCTs and the interpolation of colours differ.
"""
import array
import ast
import math
import os
import random
import subprocess
import sys

from PIL import Image, ImageDraw, features

BILINEAR = getattr(Image, 'Resampling', Image).BILINEAR
TARGETS = [(64, 48), (48, 48), (37, 61)]
N_SIZES = 500
noise = random.Random(47)
failures = 0


def complain(text):
    global failures
    failures += 1
    print(text)


def read_npy(path):
    data = open(path, 'rb').read()
    n = 10 + int.from_bytes(data[8:10], 'little')
    values = array.array('f', data[n:])
    return ast.literal_eval(data[10:n].decode())['shape'], values


def predict(folder, to, *options):
    return subprocess.run([sys.argv[1], 'predict', sys.argv[2], '-i', folder, '-o', to, '-q',
                           '--batch', '32', *options], capture_output=True, text=True)


def rows_of(folder, *options):
    """Runs cltool on a folder; returns the rows of the result."""
    result = predict(folder, 'y.npy', '--force', *options)
    if result.returncode != 0:
        sys.exit('exit %d\n%s' % (result.returncode, result.stderr))
    shape, values = read_npy('y.npy')
    n = len(values) // shape[0]
    return [values[i * n:(i + 1) * n] for i in range(shape[0])]


def place(how, image, width, height):
    """Resizes a Pillow image of any mode as cltool does: one factor, rounded sizes, the centre."""
    w, h = image.size
    if how == 'stretch':
        return image.resize((width, height), BILINEAR)
    factor = (max if how == 'crop' else min)(width / w, height / h)
    size = [max(1, math.floor(factor * n + 0.5)) for n in (w, h)]
    x, y = (int((a - b) / 2) for a, b in zip(size, (width, height)))
    image = image.resize(size, BILINEAR)
    if how == 'crop':
        return image.crop((x, y, x + width, y + height))
    black = Image.new(image.mode, (width, height))
    black.paste(image, (-x, -y))
    return black


def planes(image):
    """Returns the elements of all channels, in the order of [c,h,w]."""
    code = 'f' if image.mode == 'F' else 'B'
    return [v for channel in image.split() for v in array.array(code, channel.tobytes())]


def worst_of(values, wanted):
    """The largest difference; infinite for NaNs, which max() would lose."""
    return max(abs(a - b / 255) if a == a else math.inf for a, b in zip(values, wanted))


def compare_sizes():
    worst = {'8 bits': 0, 'float': 0}
    for how in ('stretch', 'crop', 'pad'):
        for width, height in TARGETS:
            folder = '%s-%dx%d' % (how, width, height)
            os.mkdir(folder)
            images = []
            for i in range(-(-N_SIZES // (3 * len(TARGETS)))):
                w, h = (int(math.exp(noise.uniform(0, math.log(700)))) for _ in range(2))
                images.append(Image.frombytes('RGB', (w, h), noise.randbytes(w * h * 3)))
                images[-1].save('%s/%03d.png' % (folder, i), compress_level=1)
            rows = rows_of(folder, '--resize', how, '--shape',
                           'x=%dx3x%dx%d' % (len(images), height, width))
            for image, row in zip(images, rows):
                floats = [v for c in image.split()
                          for v in planes(place(how, c.convert('F'), width, height))]
                for kind, wanted, bound in (
                        ('8 bits', planes(place(how, image, width, height)), 1.001 / 255),
                        ('float', floats, 1e-6)):
                    error = worst_of(row, wanted)
                    worst[kind] = max(worst[kind], error)
                    if error > bound:
                        complain('%s %dx%d to %dx%d, %s: differs by %g' %
                                 (how, *image.size, width, height, kind, error))
    for kind, error in worst.items():
        print('%s: largest difference %.3g (%.3g levels)' % (kind, error, error * 255))


def photograph(mode):
    image = Image.new('RGB', (43, 29))
    draw = ImageDraw.Draw(image)
    for y in range(29):
        for x in range(43):
            draw.point((x, y), (x * 6, y * 8, (x + y) * 3))
    return image.convert(mode)


def reads_webp():
    """Whether Pillow and cltool have WebP."""
    if not features.check('webp'):
        return False
    os.mkdir('webp')
    photograph('RGB').save('webp/probe.webp')
    return 'built without' not in predict('webp', 'probe.npy').stderr


def refuse_animation():
    if os.path.exists('probe.npy'):
        os.mkdir('moving')
        frames = [photograph('RGB'), photograph('L').convert('RGB')]
        frames[0].save('moving/two.webp', save_all=True, append_images=frames[1:])
        result = predict('moving', 'moving.npy')
        if result.returncode != 4 or 'two.webp' not in result.stderr:
            complain('exit %d\n%s' % (result.returncode, result.stderr))


def compare_formats():
    palette = photograph('RGB').quantize(16)
    files = {
        'rgb.png': (photograph('RGB'), {}, 0),
        'rgba.png': (photograph('RGBA'), {}, 0),
        'gray.png': (photograph('L'), {}, 0),
        'gray-alpha.png': (photograph('LA'), {}, 0),
        'bit.png': (photograph('1'), {}, 0),
        'palette.png': (palette, {}, 0),
        'palette4.png': (palette, {'bits': 4}, 0),
        'transparent.png': (palette, {'transparency': 3}, 0),
        'rgb.bmp': (photograph('RGB'), {}, 0),
        'palette.bmp': (palette, {}, 0),
        'gray.bmp': (photograph('L'), {}, 0),
        'rgb.jpg': (photograph('RGB'), {'quality': 95}, 4),
        'progressive.jpg': (photograph('RGB'), {'quality': 95, 'progressive': True}, 4),
        'full.jpg': (photograph('RGB'), {'quality': 95, 'subsampling': 0}, 4),
        'gray.jpg': (photograph('L'), {'quality': 95}, 4),
        'cmyk.jpg': (photograph('CMYK'), {'quality': 95}, 4),
    }
    if reads_webp():
        lossless = {'lossless': True, 'exact': True}
        files.update({
            'lossless.webp': (photograph('RGB'), lossless, 0),
            'lossy.webp': (photograph('RGB'), {'quality': 80}, 0),
            'alpha.webp': (photograph('RGBA'), lossless, 0),
        })
    os.mkdir('formats')
    for name, (image, options, _) in files.items():
        image.save('formats/' + name, **options)
    names = sorted(files)
    for name, row in zip(names, rows_of('formats')):
        wanted = planes(Image.open('formats/' + name).convert('RGB'))
        error, bound = worst_of(row, wanted), (files[name][2] + 0.001) / 255
        print('%-16s differs by %.3g levels' % (name, error * 255))
        if error > bound:
            complain('%s: more than %.3g levels' % (name, bound * 255))
    return ['formats/' + name for name in names]


def refuse_truncated(paths):
    """Files truncated at any place are refused by name."""
    os.mkdir('short')
    n = 0
    for path in paths:
        data = open(path, 'rb').read()
        for size in noise.sample(range(4, len(data) - 4), 6):
            name = 'short/%03d-%d-%s' % (n, size, os.path.basename(path))
            open(name, 'wb').write(data[:size])
            n += 1
    photograph('RGB').save('short/zzz-whole.png')
    result = predict('short', 'short.npy')
    for name in sorted(os.listdir('short')):
        if (name in result.stderr) == name.startswith('zzz'):
            complain('%s: %s' % (name, 'refused' if name.startswith('zzz') else 'not refused'))
    if result.returncode != 1 or '%d of %d rows failed' % (n, n + 1) not in result.stderr:
        complain('exit %d\n%s' % (result.returncode, result.stderr))
    print('%d truncated files' % n)


def refuse_unknown_colours():
    """A JPEG of four components without Adobe's segment, which names its colours."""
    os.mkdir('unknown')
    data = open('formats/cmyk.jpg', 'rb').read()
    at = data.index(b'Adobe') - 4
    data = data[:at] + data[at + 2 + int.from_bytes(data[at + 2:at + 4], 'big'):]
    open('unknown/cmyk.jpg', 'wb').write(data)
    result = predict('unknown', 'unknown.npy')
    if result.returncode != 4 or 'unknown/cmyk.jpg' not in result.stderr:
        complain('exit %d\n%s' % (result.returncode, result.stderr))


compare_sizes()
refuse_truncated(compare_formats())
refuse_unknown_colours()
refuse_animation()
sys.exit(1 if failures else 0)
