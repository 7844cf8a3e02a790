//! Random numbers derived from the seed of the call.

use wasmtime::Result;
use wasmtime::component::Linker;

use super::{denied, interface};
use crate::host::Host;

/// Maximum number of random bytes per request.
const BYTES_MAX: u64 = 64 << 10;

/// Random number generator of one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct RandomNumbers {
    state: u64,
}

impl RandomNumbers {
    /// Returns the generator for a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next number of SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        let length = usize::try_from(length.min(BYTES_MAX + 1))?;
        if length > BYTES_MAX as usize {
            return Err(denied("get-random-bytes for more than 64 KiB"));
        }
        let mut bytes: Vec<u8> = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// Charges random bytes, then generates them.
fn random_bytes(host: &mut Host, length: u64) -> Result<Vec<u8>> {
    host.charge(usize::try_from(length.min(BYTES_MAX))?)?;
    host.random.bytes(length)
}

/// Adds `random`, `insecure` and `insecure-seed`, which all use the same generator.
pub(super) fn add(linker: &mut Linker<Host>) -> Result<()> {
    let mut random = interface(linker, "random/random")?;
    random.func_wrap("get-random-bytes", |mut call, (length,): (u64,)| {
        Ok((random_bytes(call.data_mut(), length)?,))
    })?;
    random.func_wrap("get-random-u64", |mut call, (): ()| {
        Ok((call.data_mut().random.next(),))
    })?;
    let mut insecure = interface(linker, "random/insecure")?;
    insecure.func_wrap("get-insecure-random-bytes", |mut call, (length,): (u64,)| {
        Ok((random_bytes(call.data_mut(), length)?,))
    })?;
    insecure.func_wrap("get-insecure-random-u64", |mut call, (): ()| {
        Ok((call.data_mut().random.next(),))
    })?;
    let mut seed = interface(linker, "random/insecure-seed")?;
    seed.func_wrap("insecure-seed", |mut call, (): ()| {
        let random = &mut call.data_mut().random;
        Ok(((random.next(), random.next()),))
    })
}

#[cfg(test)]
mod tests {
    use super::RandomNumbers;

    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        let mut random = RandomNumbers::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!([(); 3].map(|()| random.next()), expected);
    }

    #[test]
    fn bytes_are_as_many_as_were_asked_for() {
        for length in [0, 1, 8, 13, 1 << 16] {
            assert_eq!(RandomNumbers::new(7).bytes(length).unwrap().len() as u64, length);
        }
        assert!(RandomNumbers::new(7).bytes((1 << 16) + 1).is_err());
        assert!(RandomNumbers::new(7).bytes(u64::MAX).is_err());
        assert_eq!(
            RandomNumbers::new(7).bytes(16).unwrap()[..8],
            RandomNumbers::new(7).next().to_le_bytes()
        );
    }
}
