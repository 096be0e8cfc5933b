# Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with Active Record.

require 'active_record'
require 'time'

# In a Rails application, this is a file in db/migrate. schema.rb has the default, too.
class CreateOrders < ActiveRecord::Migration[6.1]
  def change
    enable_extension 'pg_snowflake'
    # With `id: :bigint`: without it, the default is ignored in silence, and the key a bigserial.
    create_table :orders, id: :bigint, default: -> { 'snowflake_next()' } do |t|
      t.text :item, null: false
      t.integer :quantity, null: false
    end
  end
end

# Reads the time of keys of a layout, such as 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z'.
class SnowflakeLayout
  UNITS = { 's' => 1, 'ms' => 1000, 'us' => 1_000_000 }.freeze

  def initialize(notation)
    values = notation.split.to_h { |word| word.split('=') }
    @epoch = Time.iso8601(values.delete('epoch'))
    count, unit = values.delete('tick').match(/(\d+)(\w+)/).captures
    @tick = Rational(count.to_i, UNITS.fetch(unit))
    @shift = values.except('timestamp').values.sum(&:to_i)
  end

  def timestamp(key)
    @epoch + (key >> @shift) * @tick
  end
end

# What a key says. For ApplicationRecord.
module Snowflake
  # The layout of the database's keys. It never changes, so each process asks once.
  def self.layout
    @layout ||= SnowflakeLayout.new(ActiveRecord::Base.connection.select_value('SELECT snowflake_database_layout()'))
  end

  # When the row was made. Without a column created_at.
  def created_at
    Snowflake.layout.timestamp(id)
  end

  # JSON has the key as text: JavaScript reads a number of 63 bits as another number.
  def serializable_hash(options = nil)
    super.tap { |hash| hash['id'] = hash['id'].to_s if hash.key?('id') }
  end
end

class Order < ActiveRecord::Base
  include Snowflake

  # Adds orders by one statement. Returns their keys in the same order.
  def self.add_many(orders)
    insert_all!(orders, returning: :id).rows.flatten.sort # keys rise in the order in which they are made
  end
end
