;; Reads behind the end of its memory.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (i32.load (i32.const -4)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
