//! The majority of the bits of many numbers.

/// Numbers that wait until they are added together.
const AT_ONCE: usize = 16;

/// Digits of a count. A body has far fewer than 2³⁰ words, so that even four times their number fits.
const DIGITS: usize = 32;

/// Counts, for each of 64 bit positions, how many numbers have a one there.
///
/// The counts are stored by digit: a word has one binary digit of all 64 counts, so that one operation is an operation on all of them.
/// Sixteen numbers are added at once by a tree of carry-save adders (W. Muła, N. Kurz, D. Lemire, "Faster population counts using AVX2
/// instructions", The Computer Journal 61(1), 2018, section 3), five operations for each.
pub(super) struct Majority {
    waiting: [u64; AT_ONCE],
    waits: usize,
    digits: [u64; DIGITS],
    total: u32,
}

impl Default for Majority {
    fn default() -> Self {
        Self {
            waiting: [0; AT_ONCE],
            waits: 0,
            digits: [0; DIGITS],
            total: 0,
        }
    }
}

impl Majority {
    /// Adds a number if it is to count.
    #[inline]
    pub(super) fn add_if(&mut self, number: u64, counts: bool) {
        // A number that does not count is overwritten by the next. That needs no branch.
        self.waiting[self.waits] = number;
        self.waits += usize::from(counts);
        if self.waits == AT_ONCE {
            self.add_all();
        }
    }

    /// Adds the numbers that wait.
    fn add_all(&mut self) {
        let n = &self.waiting;
        let [mut ones, mut twos, mut fours, mut eights, ..] = self.digits;
        let mut eight = [0; 2];
        for (half, eight) in eight.iter_mut().enumerate() {
            let mut four = [0; 2];
            for (quarter, four) in four.iter_mut().enumerate() {
                let at = half * 8 + quarter * 4;
                let (two_a, two_b);
                (ones, two_a) = full_adder(ones, n[at], n[at + 1]);
                (ones, two_b) = full_adder(ones, n[at + 2], n[at + 3]);
                (twos, *four) = full_adder(twos, two_a, two_b);
            }
            (fours, *eight) = full_adder(fours, four[0], four[1]);
        }
        let mut carry;
        (eights, carry) = full_adder(eights, eight[0], eight[1]);
        let (low, high) = self.digits.split_at_mut(4);
        low.copy_from_slice(&[ones, twos, fours, eights]);
        for digit in high {
            (*digit, carry) = (*digit ^ carry, *digit & carry);
            if carry == 0 {
                break;
            }
        }
        self.total += AT_ONCE as u32;
        self.waits = 0;
    }

    /// Adds all numbers of another one, each as often as this power of two.
    pub(super) fn add_times_power_of_two(&mut self, mut other: Self, power: usize) {
        other.add_rest();
        self.add_rest();
        let mut carry = 0;
        for (digit, more) in self.digits.iter_mut().skip(power).zip(other.digits) {
            (*digit, carry) = full_adder(*digit, more, carry);
        }
        self.total += other.total << power;
    }

    /// Adds the numbers that still wait.
    fn add_rest(&mut self) {
        let total = self.total + self.waits as u32;
        // Zeros change no count.
        self.waiting[self.waits..].fill(0);
        self.add_all();
        self.total = total;
    }

    /// Returns the number whose bits are one where more than half of the numbers have a one.
    pub(super) fn finish(mut self) -> u64 {
        self.add_rest();
        // Compares all counts with a half, from the highest digit on.
        let (mut more, mut equal) = (0, u64::MAX);
        for (place, digit) in self.digits.iter().enumerate().rev() {
            if (self.total / 2) >> place & 1 == 0 {
                more |= equal & digit;
                equal &= !digit;
            } else {
                equal &= digit;
            }
        }
        more
    }
}

/// Adds three bits in each place. Returns the sums and the carries.
#[inline]
fn full_adder(a: u64, b: u64, c: u64) -> (u64, u64) {
    let either = a ^ b;
    (either ^ c, a & b | either & c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majority_is_that_of_counts_one_by_one() {
        let mut number = 1_u64;
        for count in (0..70).chain([254, 255, 256, 1_000, 65_537]) {
            let mut majority = Majority::default();
            let (mut counts, mut total) = ([0_u32; 64], 0);
            for n in 0..count {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                // Each place has ones with another frequency.
                let bits = number | number.rotate_left(17) & 0xFFFF_0000 | (n % 2) << 63;
                let is_counted = number >> 60 != 0;
                majority.add_if(bits, is_counted);
                if is_counted {
                    total += 1;
                    (0..64).for_each(|place| counts[place] += (bits >> place & 1) as u32);
                }
            }
            let expected = (0..64).fold(0, |bits, place| bits | u64::from(counts[place] > total / 2) << place);
            assert_eq!(majority.finish(), expected, "{count} numbers");
        }
    }

    #[test]
    fn numbers_that_count_four_times_are_as_good_as_four() {
        let number = |n: u64| {
            n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(n as u32) & (n.wrapping_mul(0xD1B5_4A32_D192_ED03) | n)
        };
        for [once, four_times] in [[0, 0], [0, 3], [5, 0], [33, 9], [100, 23], [16, 16]] {
            let [mut weighted, mut others, mut expected] = [(); 3].map(|()| Majority::default());
            for n in 0..once {
                weighted.add_if(number(n), true);
                expected.add_if(number(n), true);
            }
            for n in 1_000..1_000 + four_times {
                others.add_if(number(n), true);
                (0..4).for_each(|_| expected.add_if(number(n), true));
            }
            weighted.add_times_power_of_two(others, 2);
            assert_eq!(weighted.finish(), expected.finish(), "{once} and {four_times}");
        }
    }
}
