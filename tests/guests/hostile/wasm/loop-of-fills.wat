;; Fills its memory again and again: few instructions, many bytes, which cost as much as instructions.
;; kind: health
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (memory.grow (i32.const 900)))
      (loop
        (memory.fill (i32.const 65536) (i32.const 1) (i32.const 58982400))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
