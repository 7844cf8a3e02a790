;; Answers only if a NaN has the bits that it has on every machine.
;; kind: health
;; answers
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (if (i32.ne
            (i32.reinterpret_f32 (f32.div (f32.const -0) (f32.sub (f32.const 1) (f32.const 1))))
            (i32.const 0x7fc00000))
        (then unreachable))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
