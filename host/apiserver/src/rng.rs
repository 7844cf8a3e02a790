//! Seeded randomness: `SplitMix64` for identifiers and a stable hash for per-object jitter.

/// `SplitMix64` generator: small, fast, and deterministic for a seed on every machine.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Returns a generator whose whole sequence is determined by `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// Returns a string in the format of a version 4 UUID.
    pub fn uuid(&mut self) -> String {
        let high = (self.next_u64() & !0xF000) | 0x4000;
        let low = (self.next_u64() & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xFFFF,
            high & 0xFFFF,
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        )
    }

    /// Returns the five-character suffix that `generateName` appends.
    pub(crate) fn name_suffix(&mut self) -> String {
        // Kubernetes' alphabet: no vowels, so no words, and no easily confused characters.
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .map(|_| char::from(ALPHABET[(self.next_u64() % ALPHABET.len() as u64) as usize]))
            .collect()
    }
}

/// Returns a hash of `parts` that depends only on its arguments.
///
/// The parts are separated, so `["ab", "c"]` and `["a", "bc"]` differ.
pub fn stable_hash(seed: u64, parts: &[&str]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64 ^ mix(seed);
    for part in parts {
        for byte in part.bytes().chain([0xFF]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    mix(hash)
}

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut rng = SplitMix64::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_uuid_has_the_shape_of_version_4() {
        let uuid = SplitMix64::new(7).uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }

    #[test]
    fn the_hash_keeps_its_parts_apart() {
        assert_ne!(stable_hash(1, &["ab", "c"]), stable_hash(1, &["a", "bc"]));
        assert_ne!(stable_hash(1, &["a"]), stable_hash(2, &["a"]));
    }
}
